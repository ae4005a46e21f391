package policy_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/postgrestest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
)

// instance is one of several processes under the same file.
func instance(t *testing.T, text string) *site {
	t.Helper()
	set, err := policy.Parse("f.yaml", []byte(text), policy.AnotherInstance())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &site{t: t, set: set}
	s.mount(set)
	return s
}

const sharedAndLocal = `
policies:
  - {name: shared, limits: 3/h aligned, match: {paths: [/shared]}}
  - {name: local, limits: 3/h, counting: local, match: {paths: [/local]}}
`

// twoInstances says how many of 20 requests to two instances pass.
func twoInstances(t *testing.T, text, path string) (passed int) {
	t.Helper()
	sites := []*site{instance(t, text), instance(t, text)}
	for i := range 20 {
		if sites[i%2].send("GET", path).Code == 200 {
			passed++
		}
	}
	return passed
}

func TestPoliciesInRedis(t *testing.T) {
	redis := redistest.Start(t)
	redis.MustDo("ACL", "SETUSER", "limits", "on", ">s3cret", "~*", "+@all")
	redis.MustDo("ACL", "SETUSER", "default", "off")
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("s3cret\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LIMITS_USER", "limits")
	for _, form := range []string{"s3cret", "{file: " + password + "}"} {
		text := "store: {redis: {address: \"" + redis.Addr + "\", user: {env: LIMITS_USER}, password: " + form + ", db: 3, timeout: 2s}, on-failure: fail-closed}" +
			strings.ReplaceAll(sharedAndLocal, "name: shared", "name: shared-"+map[bool]string{true: "a", false: "b"}[form == "s3cret"])
		if got := twoInstances(t, text, "/shared"); got != 3 {
			t.Errorf("password %s: shared: %d pass, want 3", form, got)
		}
		if got := twoInstances(t, text, "/local"); got != 6 {
			t.Errorf("password %s: local: %d pass, want 6", form, got)
		}
	}
	wrong := instance(t, "store: {redis: {address: \""+redis.Addr+"\", user: limits, password: wrong, timeout: 2s}, on-failure: fail-closed}"+sharedAndLocal)
	wrong.expect(503, "GET", "/shared")
	wrong.expect(200, "GET", "/local")
}

func TestPoliciesInARedisCluster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	addresses := `"` + strings.Join(cluster.Addrs(), `", "`) + `"`
	if got := twoInstances(t, "store: {redis: {address: ["+addresses+"], cluster: true, timeout: 5s}, on-failure: fail-closed}"+sharedAndLocal, "/shared"); got != 3 {
		t.Errorf("%d pass, want 3", got)
	}
}

func TestPoliciesInMemcached(t *testing.T) {
	server := memcachedtest.Start(t)
	if got := twoInstances(t, "store: {memcached: {servers: [\""+server.Addr+"\"], timeout: 2s}, on-failure: fail-closed}"+sharedAndLocal, "/shared"); got != 3 {
		t.Errorf("%d pass, want 3", got)
	}
}

func TestPoliciesInASyncedStore(t *testing.T) {
	redis := redistest.Start(t)
	text := "store: {synced: {redis: {address: \"" + redis.Addr + "\", timeout: 2s}, interval: 10ms}}" + sharedAndLocal
	a, b := instance(t, text), instance(t, text)
	for range 3 {
		a.expect(200, "GET", "/shared")
	}
	processtest.WaitFor(t, "b to hear of it", func() bool { return b.send("GET", "/shared").Code == 429 })
}

func TestPoliciesInASyncedStoreOnPostgreSQL(t *testing.T) {
	server := postgrestest.Start(t)
	conn, err := pgx.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) //nolint:errcheck // the server ends with the test
	if _, err := conn.Exec(t.Context(), `CREATE ROLE "it's \ me" SUPERUSER LOGIN`); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LIMITS_USER", `it's \ me`)
	text := "store: {synced: {postgres: {address: \"" + server.Addr + "\", user: {env: LIMITS_USER}, password: \"any ' \\\\\", database: postgres, timeout: 2s}, interval: 10ms}}" + sharedAndLocal
	a, b := instance(t, text), instance(t, text)
	for range 3 {
		a.expect(200, "GET", "/shared")
	}
	processtest.WaitFor(t, "b to hear of it", func() bool { return b.send("GET", "/shared").Code == 429 })
}

// A process starts while PostgreSQL is down, and counts for itself.
func TestPostgreSQLIsDownAtTheStart(t *testing.T) {
	set, err := policy.Parse("f.yaml", []byte(`store: {synced: {postgres: {address: "127.0.0.1:1", user: u, database: d, timeout: 50ms}}}`+sharedAndLocal), policy.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, set: set}
	s.mount(set)
	for range 3 {
		s.expect(200, "GET", "/shared")
	}
	s.expect(429, "GET", "/shared")
	if err := set.Close(); err == nil || !strings.Contains(err.Error(), "3 hits could not be pushed") {
		t.Errorf("Close: %v", err)
	}
}

// No message has the password in it, and none the connection string.
func TestNoMessageHasThePasswordOfPostgreSQL(t *testing.T) {
	for _, address := range []string{"a:0", "a:99999", "a:b", "[::1]:x"} {
		_, err := policy.Parse("f", []byte(`store: {synced: {postgres: {address: "`+address+`", user: hunter1, password: "hunter2 'x", database: d}}}`+sharedAndLocal))
		if err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// What the file says of a store that is not there is what happens.
func TestOnFailure(t *testing.T) {
	for onFailure, want := range map[string]int{"local": 4, "local, instances: 2": 2, "fail-open": 10, "fail-closed": 0} {
		t.Run(onFailure, func(t *testing.T) {
			s := instance(t, "store: {redis: {address: \"127.0.0.1:1\", timeout: 50ms}, on-failure: "+onFailure+"}"+strings.Replace(sharedAndLocal, "3/h", "4/h", 1))
			passed, codes := 0, map[int]bool{}
			for range 10 {
				code := s.send("GET", "/shared").Code
				if codes[code] = true; code == 200 {
					passed++
				}
			}
			if passed != want {
				t.Errorf("%d pass, want %d (%v)", passed, want, codes)
			}
			if onFailure == "fail-closed" && !codes[503] {
				t.Errorf("codes %v, want 503", codes)
			}
		})
	}
}

// Two policies in one Redis are decided together there too.
func TestPoliciesInRedisAreDecidedTogether(t *testing.T) {
	redis := redistest.Start(t)
	s := instance(t, "store: {redis: {address: \""+redis.Addr+"\", timeout: 2s}, on-failure: fail-closed}"+`
policies:
  - {name: wide, limits: 5/h}
  - {name: narrow, limits: 2/h, key: path}
`)
	for range 2 {
		s.expect(200, "GET", "/a")
	}
	for range 9 {
		s.expect(429, "GET", "/a")
	}
	for range 2 {
		s.expect(200, "GET", "/b")
	}
	s.expect(200, "GET", "/c")
	s.expect(429, "GET", "/d")
}

func TestADatabaseOfRedis(t *testing.T) {
	redis := redistest.Start(t)
	s := instance(t, "store: {redis: {address: \""+redis.Addr+"\", db: 3, timeout: 2s}, on-failure: fail-closed}"+sharedAndLocal)
	s.expect(200, "GET", "/shared")
	if got := redis.MustDo("INFO", "keyspace"); !strings.Contains(got, "db3:keys=1") || strings.Contains(got, "db0") {
		t.Errorf("keys: %s", got)
	}
}

// calls returns how often the server has run each command.
func calls(redis *redistest.Server) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(redis.MustDo("INFO", "commandstats")) {
		name, rest, found := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "cmdstat_")), ":calls=")
		if found {
			all[name], _, _ = strings.Cut(rest, ",")
		}
	}
	return all
}

func TestPoliciesInRedisAreOneCommand(t *testing.T) {
	redis := redistest.Start(t)
	s := instance(t, "store: {redis: {address: \""+redis.Addr+"\", timeout: 5s}, on-failure: fail-closed, remember-denials: false}"+`
policies:
  - {name: a, limits: 3000/h}
  - {name: b, limits: 300/h}
  - {name: c, limits: 2000/h}
`)
	if d := s.set.Check(&explained{}); !d.Allowed { // the script is loaded
		t.Fatal(d)
	}
	redis.MustDo("CONFIG", "RESETSTAT")
	const requests = 1000
	var allowed atomic.Int64
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			if s.set.Check(&explained{}).Allowed {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if got := allowed.Load(); got != 299 {
		t.Errorf("%d requests were allowed, want 299", got)
	}
	if n, err := strconv.Atoi(calls(redis)["evalsha"]); err != nil || n > requests {
		t.Errorf("the server has run %v for %d requests at once, want no more evalsha", calls(redis), requests)
	}
	redis.MustDo("CONFIG", "RESETSTAT")
	for range 20 { // which are denied
		s.set.Check(&explained{})
	}
	if got := calls(redis); got["evalsha"] != "20" {
		t.Errorf("the server has run %v for 20 requests one after another, want 20 evalsha", got)
	}
	for rule, want := range map[string]int64{"a": 2700, "b": 0, "c": 1700} {
		if d, err := s.set.Limiter().Peek(t.Context(), 1, core.Hit{Rule: rule}); err != nil || d.Remaining != want {
			t.Errorf("%s has %d left (%v), want %d", rule, d.Remaining, err, want)
		}
	}
}

// Two files that count in one store under one name are refused with what to write.
func TestTwoFilesOfOneName(t *testing.T) {
	const file = "store: {memcached: {servers: [\"127.0.0.1:1\"]}}\npolicies: [{name: a, limits: 1/h}]\n"
	first, err := policy.Parse("first.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close() //nolint:errcheck // the test is over
	if _, err := policy.Parse("second.yaml", []byte(file)); err == nil || !strings.HasPrefix(err.Error(), "second.yaml: name: ") || !strings.Contains(err.Error(), "write the field name") {
		t.Errorf("the second file: %v", err)
	}
	second, err := policy.Parse("second.yaml", []byte("name: second\n"+file))
	if err != nil {
		t.Fatalf("with a name: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}
