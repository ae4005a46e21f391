package adaptertest

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// settled is a limiter that says when a request has been settled.
type settled struct {
	*core.Limiter
	done chan struct{}
}

func (s settled) Settle(r core.Request, d core.Decision, o core.Outcome) {
	s.Limiter.Settle(r, d, o)
	s.done <- struct{}{}
}

// left returns how many hits a rule has left.
func (s settled) left(t *testing.T, rule string) int64 {
	t.Helper()
	d, err := s.Peek(t.Context(), 0, core.Hit{Rule: rule, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// costs tests what handlers say about costs: SetCost and Deny.
func costs(t *testing.T, a Adapter) {
	// weighing returns a limiter of 100 requests and 1000 words, of which each request reserves
	// 10.
	weighing := func(t *testing.T) settled {
		key := keyfuncs.Static("k")
		return settled{hooktest.Limiter(t, core.Config{Name: "words", Rules: []core.Rule{
			{Name: "requests", Key: key, Limits: []core.Limit{core.PerHour(100)}},
			{Name: "words", Key: key, Limits: []core.Limit{core.PerHour(1000)}, Cost: func(core.Request) (int64, error) { return 10, nil }},
		}}), make(chan struct{}, 100)}
	}
	wait := func(t *testing.T, s settled) {
		t.Helper()
		select {
		case <-s.done:
		case <-time.After(timeout):
			t.Fatal("the request was not settled")
		}
	}
	say := func(t *testing.T, c Context, cost int64) {
		if !c.SetCost(cost) {
			t.Errorf("SetCost(%d) concerns no rule", cost)
		}
	}
	for _, row := range []struct {
		name    string
		handler func(t *testing.T, c Context) error
		panics  bool
		want    int64 // words that are left
	}{
		{"nothing said", func(_ *testing.T, c Context) error { return c.Respond(200, "ok") }, false, 990},
		{"more than reserved", func(t *testing.T, c Context) error { say(t, c, 70); return c.Respond(200, "ok") }, false, 930},
		{"less than reserved", func(t *testing.T, c Context) error { say(t, c, 3); return c.Respond(200, "ok") }, false, 997},
		{"nothing", func(t *testing.T, c Context) error { say(t, c, 0); return c.Respond(200, "ok") }, false, 1000},
		{"the same", func(t *testing.T, c Context) error { say(t, c, 10); return c.Respond(200, "ok") }, false, 990},
		{"twice", func(t *testing.T, c Context) error { say(t, c, 500); say(t, c, 20); return c.Respond(200, "ok") }, false, 980},
		{"more than the quota", func(t *testing.T, c Context) error { say(t, c, 5000); return c.Respond(200, "ok") }, false, 0},
		{"an error", func(t *testing.T, c Context) error { say(t, c, 40); return StatusError(500) }, false, 960},
		{"after the response", func(t *testing.T, c Context) error {
			err := c.Respond(200, "ok")
			say(t, c, 40)
			return err
		}, false, 960},
		{"a negative cost", func(t *testing.T, c Context) error {
			if c.SetCost(-1) {
				t.Error("SetCost(-1) concerns a rule")
			}
			return c.Respond(200, "ok")
		}, false, 990},
		{"more than reserved, then a panic", func(t *testing.T, c Context) error { say(t, c, 70); panic("on purpose") }, true, 930},
		{"less than reserved, then a panic", func(t *testing.T, c Context) error { say(t, c, 3); panic("on purpose") }, true, 990},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := weighing(t)
			app := App{Limits: []Limit{{Checker: s}}, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error { return row.handler(t, c) }}}}
			if row.panics {
				app.Outside = []Middleware{Recovery}
			}
			c := direct(t, a.Serve(t, app))
			c.do(http.MethodGet, "/", "")
			wait(t, s)
			if got := s.left(t, "words"); got != row.want {
				t.Errorf("%d words are left, want %d", got, row.want)
			}
			if got := s.left(t, "requests"); got != 99 {
				t.Errorf("%d requests are left, want 99: their rule counts, and does not weigh", got)
			}
		})
	}

	t.Run("a limiter that only counts", func(t *testing.T) {
		l := hooktest.ByKey(t, keyfuncs.Static("k"), 5)
		said := true
		c := direct(t, a.Serve(t, App{Limits: []Limit{{Checker: l, Expose: true}}, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error {
			said = c.SetCost(3)
			return c.Respond(200, "ok")
		}}}}))
		if c.do(http.MethodGet, "/", ""); said {
			t.Error("SetCost concerns a rule, and no rule weighs")
		}
	})

	t.Run("each limiter of a request is told", func(t *testing.T) {
		first, second := weighing(t), weighing(t)
		c := direct(t, a.Serve(t, App{
			Limits: []Limit{{Checker: first}, {Checker: second}, {Checker: hooktest.ByKey(t, keyfuncs.Static("k"), 5), Expose: true}},
			Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error {
				say(t, c, 70)
				return c.Respond(200, "ok")
			}}},
		}))
		c.do(http.MethodGet, "/", "")
		for i, s := range []settled{first, second} {
			wait(t, s)
			if got := s.left(t, "words"); got != 930 {
				t.Errorf("limiter %d: %d words are left, want 930", i, got)
			}
		}
	})

	t.Run("many requests at once settle each for itself", func(t *testing.T) {
		s := weighing(t)
		c := direct(t, a.Serve(t, App{Limits: []Limit{{Checker: s}}, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error {
			n, err := strconv.ParseInt(c.Header("Words"), 10, 64)
			if err != nil {
				return err
			}
			say(t, c, n)
			return c.Respond(200, "ok")
		}}}}))
		var clients sync.WaitGroup
		for i := range 30 {
			clients.Go(func() { _, _ = c.try(http.MethodGet, "/", "", "Words", strconv.Itoa(i)) })
		}
		clients.Wait()
		for range 30 {
			wait(t, s)
		}
		if got := s.left(t, "words"); got != 1000-29*30/2 {
			t.Errorf("%d words are left, want %d", got, 1000-29*30/2)
		}
	})

	t.Run("a stream charges its own client", func(t *testing.T) {
		key := keyfuncs.Header("Client")
		l := hooktest.Limiter(t, core.Config{Name: "words", Rules: []core.Rule{{
			Name: "words", Key: key, Limits: []core.Limit{core.PerHour(1000)}, Cost: func(core.Request) (int64, error) { return 10, nil },
		}}})
		s := settled{l, make(chan struct{}, 100)}
		hold := make(chan struct{})
		var others sync.WaitGroup
		addr := a.Serve(t, App{Limits: []Limit{{Checker: s}}, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error {
			if c.Header("Client") != "stream" {
				others.Done()
				<-hold
				return c.Respond(200, "ok")
			}
			d, found := c.Decision()
			parts := 0
			return c.Stream(func() string {
				if parts++; parts == 1 {
					return "part "
				}
				others.Wait() // a framework may have given the context to another request
				// A stream that is sent after its handler has no context, and settles with its decision.
				if said := c.SetCost(500); said != a.SendsAtOnce {
					t.Errorf("SetCost in a stream: %t, want %t", said, a.SendsAtOnce)
				}
				if _, finds := c.Decision(); finds != a.SendsAtOnce {
					t.Errorf("the decision is found in a stream: %t, want %t", finds, a.SendsAtOnce)
				}
				if err := s.Adjust(context.Background(), d, 500); !found || err != nil {
					t.Errorf("a decision: %t, %v", found, err)
				}
				close(hold)
				return ""
			})
		}}}})
		const n = 20
		others.Add(n)
		resp, err := streamOf(t, addr, "Client", "stream")
		if err != nil {
			t.Fatal(err)
		}
		if !a.SendsAtOnce {
			wait(t, s) // the handler has returned
		}
		var clients sync.WaitGroup
		c := direct(t, addr)
		for i := range n {
			clients.Go(func() { _, _ = c.try(http.MethodGet, "/", "", "Client", strconv.Itoa(i)) })
		}
		clients.Wait()
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Error(err)
		}
		_ = resp.Body.Close()
		for range n {
			wait(t, s)
		}
		if a.SendsAtOnce {
			wait(t, s)
		}
		for i := -1; i < n; i++ {
			client, want := strconv.Itoa(i), int64(990)
			if i < 0 {
				client, want = "stream", 500
			}
			d, err := s.Peek(t.Context(), 0, core.Hit{Rule: "words", Key: client})
			if err != nil || d.Remaining != want {
				t.Errorf("client %s has %d words left, %v, want %d", client, d.Remaining, err, want)
			}
		}
	})

	t.Run("a handler denies a request", func(t *testing.T) {
		hooks := hooktest.Funcs{OnDisallowedFunc: func(r core.Request, _ core.Decision) core.Denial {
			text := r.Method() + r.Path() + strings.Join(r.HeaderValues("Client"), "")
			return core.Denial{Status: 429, Header: []core.Header{{Name: "content-type", Value: "text/x"}}, Body: []byte(text)}
		}}
		l := hooktest.Limiter(t, core.Config{Name: "inner", Hooks: hooks, Rules: []core.Rule{{Name: "inner", Limits: []core.Limit{core.PerMinute(2)}}}})
		c := direct(t, a.Serve(t, App{Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error {
			d, err := l.Take(c.Context(), 1, core.Hit{Rule: "inner", Key: "k"})
			if err != nil {
				return err
			}
			if !d.Allowed {
				return c.Deny(d)
			}
			return c.Respond(200, "ok")
		}}}}))
		want(t, count(2, func(int) response { return c.get("/") }), 200, 2)
		got := c.get("/", "Client", "ann")
		if got.status != 429 || got.header.Get("Retry-After") == "" || got.header.Get("Cache-Control") != "no-store" ||
			got.header.Get("Content-Type") != "text/x" || got.header.Get("RateLimit") == "" || got.body != "GET/ann" {
			t.Errorf("the denial is %d %q %v, want 429 with the headers of a denial", got.status, got.body, got.header)
		}
	})
}
