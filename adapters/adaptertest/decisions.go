package adaptertest

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// decisions tests which decision a handler reads.
func decisions(t *testing.T, a Adapter) {
	named := func(t *testing.T, name string, quota int64) Limit {
		return Limit{Expose: true, Checker: hooktest.Limiter(t, core.Config{Name: name, Rules: []core.Rule{{Name: name, Key: keyfuncs.Header("Client"), Limits: []core.Limit{core.PerMinute(quota)}}}})}
	}
	of := func(t *testing.T, quota int64) Limit { return named(t, "r", quota) }
	// read returns the rule and the key of the decision that the handler reads.
	read := func(c Context) string {
		d, found := c.Decision()
		if !found {
			return "none"
		}
		return d.Rule() + " " + d.Key()
	}
	hidden := func(l Limit) Limit {
		l.Expose = false
		return l
	}
	estimated := Limit{Checker: hooktest.Limiter(t, core.Config{Rules: []core.Rule{{
		Name: "estimated", Key: keyfuncs.Header("Client"), Limits: []core.Limit{core.PerMinute(100)},
		Cost: func(core.Request) (int64, error) { return 1, nil },
	}}})}
	outer, inner := named(t, "outer", 100), named(t, "inner", 100)
	for _, row := range []struct {
		name  string
		group []Limit
		route []Limit
		want  string
	}{
		{"no limiter", nil, nil, "none"},
		{"one that is not exposed", nil, []Limit{hidden(inner)}, "none"},
		{"one that is exposed", nil, []Limit{inner}, "inner a"},
		{"one that SetCost may settle", nil, []Limit{estimated}, "estimated a"},
		{"two: the innermost", []Limit{outer}, []Limit{inner}, "inner a"},
		{"two on one route", nil, []Limit{outer, inner}, "inner a"},
		{"two, of which the outer is exposed", []Limit{outer}, []Limit{hidden(inner)}, "outer a"},
		{"two, of which the outer may be settled", []Limit{estimated}, []Limit{inner}, "inner a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := direct(t, a.Serve(t, App{Group: "/group", Limits: row.group, Inside: []Middleware{Copies}, Routes: []Route{
				{Method: http.MethodGet, Pattern: "/a", Limits: row.route, Handler: func(c Context) error { return c.Respond(http.StatusOK, read(c)) }},
			}}))
			for range 2 {
				if got := c.get("/group/a", "Client", "a"); got.body != row.want {
					t.Errorf("the handler reads %q, want %q", got.body, row.want)
				}
			}
		})
	}

	t.Run("handlers that run at the same time read their own decisions", func(t *testing.T) {
		c := direct(t, a.Serve(t, App{Limits: []Limit{of(t, 1000)}, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error {
			first := read(c)
			runtime.Gosched()
			if again := read(c); again != first {
				first += ", and then " + again
			}
			return c.Respond(http.StatusOK, first)
		}}}}))
		var clients sync.WaitGroup
		for client := range 6 {
			clients.Go(func() {
				for range 25 {
					got, err := c.try(http.MethodGet, "/", "", "Client", fmt.Sprint(client))
					if want := fmt.Sprint("r ", client); err != nil || got.body != want {
						t.Errorf("client %d: the handler reads %q, want %q (%v)", client, got.body, want, err)
					}
				}
			})
		}
		clients.Wait()
	})

	t.Run("a decision that a handler has read stays as it is", func(t *testing.T) {
		kept := make(chan core.Decision, 10)
		c := direct(t, a.Serve(t, App{Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{of(t, 10)}, Handler: func(c Context) error {
			d, _ := c.Decision()
			kept <- d
			return c.Respond(http.StatusOK, "")
		}}}}))
		for i := range 5 {
			c.get("/", "Client", strings.Repeat("x", i+1))
		}
		for i := range 5 { // after all responses
			if d := <-kept; d.Remaining != 9 || d.Key() != strings.Repeat("x", i+1) {
				t.Errorf("request %d: the decision has become %v of %q", i, d, d.Key())
			}
		}
	})

	t.Run("a handler that runs on after a timeout keeps its decision", func(t *testing.T) {
		if !a.TimeoutOutside {
			t.Skip("http.TimeoutHandler cannot be put before the limiter")
		}
		limit, release, ended := of(t, 3), make(chan struct{}), make(chan string)
		c := direct(t, a.Serve(t, App{Outside: []Middleware{Timeout}, Limits: []Limit{limit}, Routes: []Route{
			{Method: http.MethodGet, Pattern: "/slow", Handler: func(c Context) error {
				<-release
				ended <- read(c)
				return nil
			}},
			{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error { return c.Respond(http.StatusOK, read(c)) }},
		}}))
		for i := range 2 {
			c.get("/slow", "Client", fmt.Sprint("slow", i))
		}
		for range 5 { // while the handlers above still run
			c.get("/slow", "Client", "many")
		}
		close(release)
		seen := map[string]int{}
		for range 5 {
			seen[<-ended]++
		}
		for text, n := range map[string]int{"r slow0": 1, "r slow1": 1, "r many": 3} {
			if seen[text] != n {
				t.Errorf("the handlers read %v, want %q %d times", seen, text, n)
			}
		}
		// The limiter may decide after the timeout.
		counts := func() hooktest.Numbers { return hooktest.Count(limit.Checker.(*core.Limiter)) }
		for counts().Allowed+counts().Denied < 7 {
			runtime.Gosched()
		}
		if got := counts(); got.Allowed != 5 {
			t.Errorf("%d of 7 requests were allowed, want 5", got.Allowed)
		}
	})

	t.Run("key functions and hooks reach the framework's own request", func(t *testing.T) {
		seen := make(chan string, 10)
		see := func(where string, r core.Request) {
			client, found := a.Own(r, "Client")
			seen <- fmt.Sprint(where, " ", client, " ", found)
		}
		l := hooktest.Limiter(t, core.Config{
			Rules: []core.Rule{{
				Name: "r", Limits: []core.Limit{core.PerMinute(1)},
				Key:    keyfuncs.Func(func(r core.Request) (string, error) { see("key", r); return "", nil }),
				Counts: func(r core.Request, _ core.Outcome) bool { see("counts", r); return true },
			}},
			Hooks: hooktest.Funcs{OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
				see("denied", r)
				return core.DefaultHooks{}.OnDisallowed(r, d)
			}},
		})
		c := direct(t, a.Serve(t, limited(l)))
		want(t, count(2, func(int) response { return c.get("/", "Client", "alice") }), 200, 1, 429, 1)
		for _, want := range []string{"key alice true", "counts alice true", "key alice true", "denied alice true"} {
			if got := <-seen; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		if _, found := a.Own(nobody{}, "Client"); found {
			t.Error("a request of no framework has one")
		}
	})

	t.Run("a handler that has taken over the connection keeps its decision", func(t *testing.T) {
		if !a.Hijacks || !a.SendsAtOnce {
			t.Skip("a handler cannot use a connection that it has taken over")
		}
		limit, release, ended := of(t, 10), make(chan struct{}), make(chan string)
		c := direct(t, a.Serve(t, App{Limits: []Limit{limit}, Routes: []Route{
			{Method: http.MethodGet, Pattern: "/hijack", Handler: func(c Context) error {
				if err := c.Hijack("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", nil); err != nil {
					return err
				}
				<-release
				ended <- read(c)
				return nil
			}},
			{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error { return c.Respond(http.StatusOK, read(c)) }},
		}}))
		c.get("/hijack", "Client", "hijacker")
		for range 3 {
			if got := c.get("/", "Client", "b"); got.body != "r b" {
				t.Errorf("the handler reads %q", got.body)
			}
		}
		close(release)
		if got := <-ended; got != "r hijacker" {
			t.Errorf("after three other requests, the handler reads %q", got)
		}
	})
}

// nobody is a request of no framework.
type nobody struct{ core.Request }

func (nobody) Value(any) any { return nil }
