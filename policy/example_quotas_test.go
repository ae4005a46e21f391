package policy_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// customers reads the quotas of customers from a database.
type customers struct {
	db interface { // *sql.DB
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
}

// Quotas implements policy.QuotaSource.
func (c customers) Quotas(ctx context.Context, row func(key, quotas string) error) error {
	rows, err := c.db.QueryContext(ctx, "SELECT api_key, quotas FROM customers WHERE quotas IS NOT NULL")
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err has the error
	for rows.Next() {
		var key, quotas string
		if err := rows.Scan(&key, &quotas); err != nil {
			return err
		}
		if err := row(key, quotas); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A column of a database has the quotas of single customers. It is read once a minute.
func ExampleQuotaSource() {
	db := sql.OpenDB(fakeDatabase{{"ann-key", "3/m"}, {"bob-key", "unlimited"}})
	defer db.Close() //nolint:errcheck // the program ends
	set, err := policy.Parse("limits.yaml", []byte(`
policies:
  - name: api
    key: header["x-api-key"]
    fallback: ip
    limits: 1/m                    # of keys that the table does not have
    quotas: {source: customers, every: 1m}
`), policy.WithQuotas("customers", customers{db}), policy.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // the program ends
	app := httplimit.Middleware(set)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, key := range []string{"ann-key", "bob-key", "a guess"} {
		allowed := 0
		for range 5 {
			r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
			r.Header.Set("X-Api-Key", key)
			if app.ServeHTTP(w, r); w.Code == http.StatusOK {
				allowed++
			}
		}
		fmt.Printf("%s: %d of 5\n", key, allowed)
	}
	// Output:
	// ann-key: 3 of 5
	// bob-key: 5 of 5
	// a guess: 1 of 5
}

// The rows of a table that is small enough for the program.
func ExampleWithQuotas() {
	plans := quotasOf{"ann": "1000/m", "bob": "unlimited"}
	set, err := policy.Parse("limits.yaml", []byte("policies: [{name: api, key: user, missing: reject, limits: 100/m, quotas: {source: plans}}]"),
		policy.WithQuotas("plans", plans), policy.WithUser(func(core.Request) string { return "" }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // the program ends
	fmt.Println(set.QuotasOf("api", "ann"))
	fmt.Println(set.QuotasOf("api", "eve"))
	// Output:
	// [1000] <nil>
	// [] <nil>
}

type quotasOf map[string]string

func (q quotasOf) Quotas(_ context.Context, row func(key, quotas string) error) error {
	for key, quotas := range q {
		if err := row(key, quotas); err != nil {
			return err
		}
	}
	return nil
}

// A table in another folder than the policy file's.
func ExampleQuotaFile() {
	path := filepath.Join(newFolder(), "customers.quotas")
	defer os.RemoveAll(filepath.Dir(path)) //nolint:errcheck // a temporary folder
	if err := os.WriteFile(path, []byte("# quotas of single customers\nann: 1000/m\nbob: unlimited\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	set, err := policy.Parse("limits.yaml", []byte("policies: [{name: api, key: user, missing: reject, limits: 100/m, quotas: {source: plans, every: 5s}}]"),
		policy.WithQuotas("plans", policy.QuotaFile(path)), policy.WithUser(func(core.Request) string { return "" }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // the program ends
	fmt.Println(set.QuotasOf("api", "ann"))
	// Output: [1000] <nil>
}

// Policies that are not in a file name a table in a folder.
func ExampleFolder() {
	folder := newFolder()
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	if err := os.WriteFile(filepath.Join(folder, "customers.quotas"), []byte("203.0.113.7: 5/m\n203.0.113.8: many\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	_, err := policy.Parse("limits.yaml", []byte("policies: [{name: api, key: ip, limits: 100/m, quotas: {file: customers.quotas}}]"), policy.Folder(folder))
	for _, e := range policy.Errors(err) {
		fmt.Println(e.Line, e.Problem)
	}
	// Output: 2 "many": is no quota
}

// A worker takes hits of a key without a request.
func ExampleSet_QuotasOf() {
	set, err := policy.Parse("limits.yaml", []byte("policies: [{name: jobs, key: user, missing: reject, limits: 1/h, quotas: {source: plans}}]"),
		policy.WithQuotas("plans", quotasOf{"ann": "2/h"}), policy.WithUser(func(core.Request) string { return "" }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // the program ends
	for range 3 {
		quotas, err := set.QuotasOf("jobs", "ann")
		if err != nil {
			fmt.Println(err)
			return
		}
		d, err := set.Limiter().Take(context.Background(), 1, core.Hit{Rule: "jobs", Key: "ann", Quotas: quotas})
		fmt.Println(d.Allowed, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}

func ExampleQuotaExplanation_With() {
	limit := core.Limit{Quota: 10, Window: 1e9, Algorithm: core.TokenBucket, Burst: 20}
	fmt.Println(policy.Words(policy.QuotaExplanation{Quota: 5, From: "customers.quotas:3"}.With(limit)))
	// Output: 10 at once, and one more every 200ms
}

// fakeDatabase is a database with one table of two columns.
type fakeDatabase [][2]string

func (f fakeDatabase) Connect(context.Context) (driver.Conn, error) { return fakeConn{f}, nil }
func (f fakeDatabase) Driver() driver.Driver                        { return nil }

type fakeConn struct{ rows fakeDatabase }

func (c fakeConn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (c fakeConn) Close() error                        { return nil }
func (c fakeConn) Begin() (driver.Tx, error)           { return nil, driver.ErrSkip }
func (c fakeConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &fakeRows{left: c.rows}, nil
}

type fakeRows struct{ left fakeDatabase }

func (r *fakeRows) Columns() []string { return []string{"api_key", "quotas"} }
func (r *fakeRows) Close() error      { return nil }
func (r *fakeRows) Next(to []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	to[0], to[1] = r.left[0][0], r.left[0][1]
	r.left = r.left[1:]
	return nil
}
