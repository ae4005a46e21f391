package adaptertest

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/internal/usernames"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// loginApp protects POST /login: 20 attempts a minute for each address, 5 failures for each address
// and username. attempts counts what reaches the handler.
func loginApp(t *testing.T, attempts *atomic.Int64) (App, *core.Limiter) {
	ip := behindProxies("X-Forwarded-For")
	l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{
		{Name: "ip", Key: ip, Limits: []core.Limit{core.PerMinute(20)}},
		{
			Name: "ip-user", Key: keyfuncs.Join(ip, keyfuncs.PostField("username", keyfuncs.Normalize(usernames.Plain), keyfuncs.Normalize(usernames.Fold))),
			Limits: []core.Limit{core.PerMinute(5)},
			Counts: func(_ core.Request, o core.Outcome) bool { return o.Panicked || o.Status >= 400 && o.Status < 500 },
			Clears: func(_ core.Request, o core.Outcome) bool { return !o.Panicked && o.Status < 400 },
		},
	}})
	return App{Routes: []Route{{Method: http.MethodPost, Pattern: "/login", Limits: []Limit{{Checker: l}}, Handler: func(c Context) error {
		attempts.Add(1)
		switch c.Form("password") {
		case "ok":
			return c.Respond(http.StatusOK, "welcome")
		case "broken":
			return c.Respond(http.StatusInternalServerError, "")
		default:
			return StatusError(http.StatusUnauthorized)
		}
	}}}}, l
}

func login(t *testing.T, a Adapter) {
	serve := func(t *testing.T) (*client, *atomic.Int64) {
		attempts := new(atomic.Int64)
		app, _ := loginApp(t, attempts)
		return proxied(t, a.Serve(t, app)), attempts
	}
	attempt := func(c *client, ip, user, password string) response {
		return c.post("/login", "username="+user+"&password="+password, "X-Forwarded-For", ip)
	}

	t.Run("five failures, then denied", func(t *testing.T) {
		c, _ := serve(t)
		want(t, count(15, func(int) response { return attempt(c, "203.0.113.1", "alice", "x") }), 401, 5, 429, 10)
	})

	t.Run("server errors do not count", func(t *testing.T) {
		c, _ := serve(t)
		want(t, count(10, func(int) response { return attempt(c, "203.0.113.1", "alice", "broken") }), 500, 10)
	})

	t.Run("wrong passwords all at once", func(t *testing.T) {
		c, attempts := serve(t)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { attempt(c, "203.0.113.1", "alice", "x") })
		}
		wg.Wait()
		if n := attempts.Load(); n != 5 {
			t.Errorf("%d attempts reached the handler, want 5", n)
		}
	})

	t.Run("a success does not clear the address", func(t *testing.T) {
		c, _ := serve(t)
		got := count(25, func(i int) response {
			if i == 19 {
				return attempt(c, "203.0.113.1", "mallory", "ok")
			}
			return attempt(c, "203.0.113.1", fmt.Sprintf("victim%d", i), "x")
		})
		want(t, got, 401, 19, 200, 1, 429, 5)
	})

	t.Run("a success clears the address and username", func(t *testing.T) {
		c, _ := serve(t)
		want(t, count(4, func(int) response { return attempt(c, "203.0.113.1", "alice", "x") }), 401, 4)
		want(t, count(4, func(int) response { return attempt(c, "203.0.113.2", "alice", "x") }), 401, 4)
		want(t, count(1, func(int) response { return attempt(c, "203.0.113.1", "alice", "ok") }), 200, 1)
		want(t, count(6, func(int) response { return attempt(c, "203.0.113.1", "alice", "x") }), 401, 5, 429, 1)
		want(t, count(2, func(int) response { return attempt(c, "203.0.113.2", "alice", "x") }), 401, 1, 429, 1)
	})

	t.Run("attempts whose client hangs up count", func(t *testing.T) {
		attempts := new(atomic.Int64)
		app, l := loginApp(t, attempts)
		addr := a.Serve(t, app)
		const form = "username=alice&password=x"
		for range 3 {
			before := hooktest.Count(l)
			conn, err := dial(addr)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, fmt.Sprintf("POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", len(form), form))
			_ = conn.Close()
			waitFor(t, func() bool { now := hooktest.Count(l); return now.Allowed+now.Denied > before.Allowed+before.Denied })
		}
		waitFor(t, func() bool { return attempts.Load() == 3 })
		c := direct(t, addr)
		want(t, count(4, func(int) response { return c.post("/login", form) }), 401, 2, 429, 2)
	})
}

// waitFor waits for something that another goroutine does.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(timeout); !done(); {
		if time.Now().After(end) {
			t.Fatal("nothing happens")
		}
		<-time.After(time.Millisecond)
	}
}
