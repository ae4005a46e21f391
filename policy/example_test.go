package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/policy"
)

func Example() {
	set, err := policy.Parse("limits.yaml", []byte(`
policies:
  - name: by-method
    key: method
    limits: {maximumRequests: 3, timePeriodInMilliseconds: 6000}
    headers: x-milliseconds
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // the program ends

	app := httplimit.Middleware(set)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 4 {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200 2
	// 200 1
	// 200 0
	// 429 0
}

func ExampleLoad() {
	path := filepath.Join(newFolder(), "limits.yaml")
	if err := os.WriteFile(path, []byte("policies:\n"+
		"  - {name: all, limits: [10/s, 120/m, 240/h bucketed_window precision=1m]}\n"+
		"  - {name: login, key: ip, limits: 30/5m bucketed_window precision=1m}\n"+
		"  - {name: export, key: ip, limits: 10/m}\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(filepath.Dir(path)) //nolint:errcheck // a temporary folder
	set, err := policy.Load(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range set.Policies() {
		fmt.Println(p.Name)
	}
	fmt.Println(set.Close())
	// Output:
	// all
	// login
	// export
	// <nil>
}

func ExampleWatch() {
	path := filepath.Join(newFolder(), "limits.yaml")
	if err := os.WriteFile(path, []byte("policies: [{name: all, limits: 100/m}]"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(filepath.Dir(path)) //nolint:errcheck // a temporary folder
	changed := make(chan error)
	set, err := policy.Watch(context.Background(), path, policy.OnReload(func(err error) { changed <- err }))
	if err != nil {
		fmt.Println(err)
		return
	}
	next := path + ".next" // a file that takes the other one's place is never read in part
	if err := errors.Join(os.WriteFile(next, []byte("policies: [{name: all, limits: 200/m}, {name: burst, limits: 20/s}]"), 0o600), os.Rename(next, path)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-changed, len(set.Policies()))
	fmt.Println(set.Close())
	// Output:
	// <nil> 2
	// <nil>
}

func ExampleErrors() {
	_, err := policy.Parse("limits.yaml", []byte("policies:\n  - name: api\n    limts: 3/6s\n    dry-run: perhaps\n"))
	for _, e := range policy.Errors(err) {
		fmt.Println(e.Line, e.Field, e.Problem)
	}
	// Output:
	// 2 policies[0] the field limits is missing
	// 3 policies[0].limts there is no such field
	// 4 policies[0].dry-run "perhaps": want true or false
}

func ExampleOnDisallowed() {
	audit := policy.OnDisallowed(func(r core.Request, d core.Decision, denial core.Denial) core.Denial {
		fmt.Println(d.Rule(), r.Path(), "dry run:", d.DryRun)
		return denial
	})
	set, err := policy.Parse("limits.yaml", []byte("policies: [{name: planned, limits: 1/h, dry-run: true}]"), audit)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // the program ends
	app := httplimit.Middleware(set)(http.NotFoundHandler())
	for range 2 {
		app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/path", nil))
	}
	// Output: planned /path dry run: true
}

func ExampleWithTier() {
	plans := map[string]string{"ann": "paid"}
	set, err := policy.Parse("limits.yaml", []byte(`
policies:
  - name: api
    key: user
    tiers: {default: 1/m, paid: 100/m}
`),
		policy.WithUser(func(r core.Request) string { u, _ := r.Query("user"); return u }),
		policy.WithTier(func(r core.Request) (string, error) { u, _ := r.Query("user"); return plans[u], nil }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // the program ends
	app := httplimit.Middleware(set)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, user := range []string{"ann", "ann", "bob", "bob"} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?user="+user, nil))
		fmt.Println(user, w.Code)
	}
	// Output:
	// ann 200
	// ann 200
	// bob 200
	// bob 429
}

func ExampleSet_Only() {
	set, err := policy.Parse("limits.yaml", []byte("policies: [{name: api, limits: 100/m}, {name: login, limits: 1/m}]"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // the program ends
	login, err := set.Only("login")
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("POST /login", httplimit.Middleware(login)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for range 2 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/login", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 429
}

func ExampleSet_Explain() {
	set, err := policy.Parse("limits.yaml", []byte("policies: [{name: api, key: 'method + \" \" + path', limits: 3/6s fixed_window}, {name: admin, limits: 1/s, match: {paths: [/admin/**]}}]"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // the program ends
	for _, e := range set.Explain(floodgatetest.NewRequest("GET", "/a")) {
		fmt.Printf("%s: %t, %s; key %q, %v\n", e.Policy, e.Applies, e.Why, e.Key, e.Limits)
	}
	// Output:
	// api: true, the policy has no match conditions; key "GET /a", [3 per 6s (fixed_window)]
	// admin: false, the path is none of /admin/**; key "", []
}

// The store of the program takes the place of the one in the file, and the program closes it.
func ExampleWithStore() {
	store := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 10_000}))
	defer store.Close() //nolint:errcheck // never fails
	set, err := policy.Parse("limits.yaml", []byte("policies: [{name: all, key: ip, limits: 100/m}]"), policy.WithStore(store))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close() //nolint:errcheck // the program ends
	httplimit.Middleware(set)(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(store.Len(), "key")
	// Output: 1 key
}

// An editor checks policy files with the schema.
func ExampleSchema() {
	var schema struct {
		Schema string `json:"$schema"`
	}
	err := json.Unmarshal(policy.Schema(), &schema)
	fmt.Println(schema.Schema, err)
	// Output: https://json-schema.org/draft/2020-12/schema <nil>
}

// The quotas of customers are in a table of the program.
func ExampleWithQuota() {
	plans := map[string]int64{"ann-key": 3, "bob-key": core.Unlimited}
	set, err := policy.Parse("limits.yaml", []byte(`policies: [{name: api, key: 'header["x-api-key"]', fallback: ip, limits: 1/m}]`),
		policy.Log(slog.New(slog.DiscardHandler)), policy.WithQuota(func(r core.Request, _ string, _ core.Limit) (int64, bool, error) {
			quota, found := plans[strings.Join(r.HeaderValues("X-Api-Key"), "")]
			return quota, found, nil
		}))
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

// A test of the limits in a file does not wait for the turn of its requests.
func ExampleWithoutWaiting() {
	set, err := policy.Parse("limits.yaml", []byte("policies: [{name: api, limits: 2/m, wait: 30s}]"), policy.WithoutWaiting())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = set.Close() }()
	app := httplimit.Middleware(set)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 3 {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 200
	// 429
}

// denials counts the requests that the limits of a file deny. Package observe counts more.
type denials struct{ n int }

func (r *denials) Observe(string, []core.Rule) core.ObserverFuncs {
	return core.ObserverFuncs{Decided: func(_ context.Context, d core.Decision, _, _ int) {
		if d.Reason == core.ReasonOverLimit {
			r.n++
		}
	}}
}

func ExampleWithObserver() {
	counted := new(denials)
	set := core.Must(policy.Parse("policies.yaml", []byte(`
name: site
policies:
  - name: api
    limits: 2/m
    key: ip
`), policy.WithObserver(counted)))
	defer func() { _ = set.Close() }()
	for range 5 {
		set.Limiter().Allow(context.Background(), core.Hit{Rule: "api", Key: "192.0.2.1"})
	}
	fmt.Println(counted.n, "denied")
	// Output: 3 denied
}
