package adaptertest

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// An adapter may keep decisions in memory that other requests use later. A handler must
// read those of its own request only.
func decisions(t *testing.T, a Adapter) {
	of := func(t *testing.T, name string, quota int64) Limit {
		return Limit{Expose: true, Checker: limiter(t, core.Config{Name: name, Rules: []core.Rule{{Name: name, Key: keyfuncs.Header("Client"), Limits: []core.Limit{core.PerMinute(quota)}}}})}
	}
	// keys returns the keys of the decisions that the handler reads.
	keys := func(c Context) string {
		text := ""
		for _, d := range c.Decisions() {
			text += d.Rule + " " + d.Key() + ", "
		}
		if d, found := c.Decision(); found {
			text += "last " + d.Rule + " " + d.Key()
		}
		return text
	}

	t.Run("handlers that run at the same time read their own decisions", func(t *testing.T) {
		group, route := of(t, "group", 1000), of(t, "route", 1000)
		c := direct(t, a.Serve(t, App{
			Group:  "/group",
			Limits: []Limit{group},
			Routes: []Route{
				{Method: http.MethodGet, Pattern: "/two", Limits: []Limit{route, group}, Handler: func(c Context) error {
					first := keys(c)
					runtime.Gosched()
					if again := keys(c); again != first {
						first += ", and then " + again
					}
					return c.Respond(http.StatusOK, first)
				}},
				{Method: http.MethodGet, Pattern: "/one", Handler: func(c Context) error { return c.Respond(http.StatusOK, keys(c)) }},
			},
		}))
		var clients sync.WaitGroup
		for client := range 6 {
			clients.Go(func() {
				for range 25 {
					for path, format := range map[string]string{"/group/two": "group %[1]d, route %[1]d, last route %[1]d", "/group/one": "group %[1]d, last group %[1]d"} {
						got, err := c.try(http.MethodGet, path, "", "Client", fmt.Sprint(client))
						if want := fmt.Sprintf(format, client); err != nil || got.body != want {
							t.Errorf("client %d, %s: the handler reads %q, want %q (%v)", client, path, got.body, want, err)
						}
					}
				}
			})
		}
		clients.Wait()
	})

	t.Run("a decision that a handler has read stays as it is", func(t *testing.T) {
		read := make(chan core.Decision, 10)
		c := direct(t, a.Serve(t, App{Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{of(t, "r", 10)}, Handler: func(c Context) error {
			for _, d := range c.Decisions() {
				read <- d
			}
			return c.Respond(http.StatusOK, "")
		}}}}))
		for i := range 5 {
			c.get("/", "Client", strings.Repeat("x", i+1))
		}
		for i := range 5 { // after all responses
			if d := <-read; d.Remaining != 9 || d.Key() != strings.Repeat("x", i+1) {
				t.Errorf("request %d: the decision has become %v of %q", i, d, d.Key())
			}
		}
	})

	t.Run("a request without a limiter has no decision", func(t *testing.T) {
		c := direct(t, a.Serve(t, App{Routes: []Route{
			{Method: http.MethodGet, Pattern: "/limited", Limits: []Limit{of(t, "r", 10)}, Handler: ok},
			{Method: http.MethodGet, Pattern: "/free", Handler: func(c Context) error { return c.Respond(http.StatusOK, keys(c)) }},
		}}))
		for range 3 {
			c.get("/limited", "Client", "a")
			if got := c.get("/free", "Client", "a"); got.body != "" {
				t.Errorf("the handler reads %q", got.body)
			}
		}
	})

	t.Run("a panic of the handler leaves no decision behind", func(t *testing.T) {
		limit := of(t, "r", 10)
		c := direct(t, a.Serve(t, App{Outside: []Middleware{Recovery}, Limits: []Limit{limit}, Routes: []Route{
			{Method: http.MethodGet, Pattern: "/panic", Limits: []Limit{limit}, Handler: func(Context) error { panic("ordinary") }},
			{Method: http.MethodGet, Pattern: "/", Limits: []Limit{limit}, Handler: func(c Context) error { return c.Respond(http.StatusOK, keys(c)) }},
		}}))
		for range 5 {
			c.get("/panic", "Client", "a")
			if got := c.get("/", "Client", "b"); got.body != "r b, last r b" {
				t.Errorf("the handler reads %q", got.body)
			}
		}
		want(t, count(2, func(int) response { return c.get("/", "Client", "a") }), 200, 2)
	})

	t.Run("a handler that runs on after a timeout keeps its decision", func(t *testing.T) {
		if !a.TimeoutOutside {
			t.Skip("http.TimeoutHandler cannot be put before the limiter")
		}
		limit, release, ended := of(t, "r", 3), make(chan struct{}), make(chan string)
		c := direct(t, a.Serve(t, App{Outside: []Middleware{Timeout}, Limits: []Limit{limit}, Routes: []Route{
			{Method: http.MethodGet, Pattern: "/slow", Limits: []Limit{limit}, Handler: func(c Context) error {
				<-release
				ended <- keys(c)
				return nil
			}},
			{Method: http.MethodGet, Pattern: "/", Limits: []Limit{limit}, Handler: func(c Context) error { return c.Respond(http.StatusOK, keys(c)) }},
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
		for text, n := range map[string]int{"r slow0, last r slow0": 1, "r slow1, last r slow1": 1, "r many, last r many": 3} {
			if seen[text] != n {
				t.Errorf("the handlers read %v, want %q %d times", seen, text, n)
			}
		}
		// The limiter may decide after the timeout.
		counts := limit.Checker.(*core.Limiter).Stats
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
		l := limiter(t, core.Config{
			Rules: []core.Rule{{
				Name: "r", Limits: []core.Limit{core.PerMinute(1)},
				Key:    keyfuncs.Func(func(r core.Request) (string, error) { see("key", r); return "", nil }),
				Counts: func(r core.Request, _ core.Outcome) bool { see("counts", r); return true },
			}},
			Hooks: core.HookFuncs{OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
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
		limit, release, ended := of(t, "r", 10), make(chan struct{}), make(chan string)
		c := direct(t, a.Serve(t, App{Limits: []Limit{limit}, Routes: []Route{
			{Method: http.MethodGet, Pattern: "/hijack", Limits: []Limit{limit}, Handler: func(c Context) error {
				if err := c.Hijack("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", nil); err != nil {
					return err
				}
				<-release
				ended <- keys(c)
				return nil
			}},
			{Method: http.MethodGet, Pattern: "/", Limits: []Limit{limit}, Handler: func(c Context) error { return c.Respond(http.StatusOK, keys(c)) }},
		}}))
		c.get("/hijack", "Client", "hijacker")
		for range 3 {
			if got := c.get("/", "Client", "b"); got.body != "r b, last r b" {
				t.Errorf("the handler reads %q", got.body)
			}
		}
		close(release)
		if got := <-ended; got != "r hijacker, last r hijacker" {
			t.Errorf("after three other requests, the handler reads %q", got)
		}
	})
}

// nobody is a request of no framework.
type nobody struct{ core.Request }

func (nobody) Value(any) any { return nil }
