package adaptertest

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// journal is a log that a test reads.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// take returns the lines since the last call that have been written by Floodgate, as others write
// to the default logger too.
func (j *journal) take() (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.buf.String()) {
		if strings.Contains(line, "keyfuncs: ") || strings.Contains(line, "floodgate: ") {
			lines = append(lines, line)
		}
	}
	j.buf.Reset()
	return lines
}

// defaultLog is a journal of what is written to the default logger while the test runs.
func defaultLog(t *testing.T) *journal {
	j, before := &journal{}, slog.Default()
	slog.SetDefault(j.logger())
	t.Cleanup(func() { slog.SetDefault(before) })
	return j
}

// logged tests what an operator reads in the log.
func logged(t *testing.T, a Adapter) {
	// one fails if there is not exactly one line, which has all the words, or if it has a part of
	// what clients have sent.
	one := func(t *testing.T, j *journal, words ...string) {
		t.Helper()
		lines := j.take()
		if len(lines) != 1 {
			t.Fatalf("%d lines, want 1: %q", len(lines), lines)
		}
		for _, w := range words {
			if !strings.Contains(lines[0], w) {
				t.Errorf("%q is missing: %s", w, lines[0])
			}
		}
		for _, sent := range []string{"6.6.6", "127.0.0", "alice"} {
			if strings.Contains(lines[0], sent) {
				t.Errorf("what the client has sent is in the log: %s", lines[0])
			}
		}
	}
	forwardedFor := func(i int) []string {
		return []string{"X-Forwarded-For", fmt.Sprintf("6.6.6.%d", i)}
	}

	t.Run("the one-liner behind a proxy that nobody has listed", func(t *testing.T) {
		j := defaultLog(t)
		c := direct(t, a.PerIP(t, 5, time.Hour))
		want(t, count(105, func(i int) response { return c.get("/", forwardedFor(i)...) }), 200, 5, 429, 100)
		one(t, j, "level=WARN", "limiter=per-ip", "header=X-Forwarded-For", "not listed as a proxy", "keyfuncs.Behind")
	})

	t.Run("the one-liner behind a proxy that is listed", func(t *testing.T) {
		j := defaultLog(t)
		addr := a.PerIP(t, 5, time.Hour, keyfuncs.Behind("X-Forwarded-For", "127.0.0.2/32"))
		want(t, count(105, func(i int) response { return proxied(t, addr).get("/", forwardedFor(i)...) }), 200, 105)
		want(t, count(6, func(int) response { return proxied(t, addr).get("/", forwardedFor(7)...) }), 200, 4, 429, 2)
		if lines := j.take(); lines != nil {
			t.Errorf("logged: %q", lines)
		}
		// A client that is no proxy, and sends the header of one.
		want(t, count(20, func(i int) response { return direct(t, addr).get("/", forwardedFor(i)...) }), 200, 5, 429, 15)
		one(t, j, "level=WARN", "header=X-Forwarded-For")
	})

	t.Run("nobody writes a forwarded header", func(t *testing.T) {
		j := defaultLog(t)
		c := direct(t, a.PerIP(t, 5, time.Hour))
		want(t, count(105, func(int) response { return c.get("/", "X-Real-Name", "alice") }), 200, 5, 429, 100)
		if lines := j.take(); lines != nil {
			t.Errorf("logged: %q", lines)
		}
	})

	// twoRoutes serves /a and /b, with the limits around the router.
	twoRoutes := func(l core.Checker) App {
		return App{Limits: []Limit{{Checker: l}}, Routes: []Route{
			{Method: http.MethodGet, Pattern: "/a", Handler: ok},
			{Method: http.MethodGet, Pattern: "/b", Handler: ok},
		}}
	}
	byRoute := func(t *testing.T, j *journal) *core.Limiter {
		return hooktest.Limiter(t, core.Config{Log: j.logger(), Rules: []core.Rule{{Name: "r", Key: keyfuncs.Route(), Limits: []core.Limit{core.PerMinute(2)}}}})
	}

	t.Run("keys by route before the router has matched", func(t *testing.T) {
		j := &journal{}
		c := direct(t, a.Serve(t, twoRoutes(byRoute(t, j))))
		paths := []string{"/a", "/b", "/a", "/b", "/a", "/b"}
		got := count(len(paths), func(i int) response { return c.get(paths[i]) })
		if a.LimitsFirst {
			want(t, got, 200, 2, 429, 4) // one counter for everything, and not in silence
			one(t, j, "level=ERROR", "limiter=default", "no matched route", "mount the limiter on the routes")
			return
		}
		want(t, got, 200, 4, 429, 2)
		if lines := j.take(); lines != nil {
			t.Errorf("logged: %q", lines)
		}
		want(t, count(5, func(i int) response { return c.get(fmt.Sprintf("/x%d", i)) }), 404, 2, 429, 3)
		one(t, j, "level=ERROR", "no route exists for the request's path")
	})

	t.Run("keys by route on the routes", func(t *testing.T) {
		j := &journal{}
		l := byRoute(t, j)
		app := twoRoutes(l)
		app.Limits = nil
		for i := range app.Routes {
			app.Routes[i].Limits = []Limit{{Checker: l}}
		}
		c := direct(t, a.Serve(t, app))
		paths := []string{"/a", "/b", "/a", "/b", "/a", "/b"}
		want(t, count(len(paths), func(i int) response { return c.get(paths[i]) }), 200, 4, 429, 2)
		if lines := j.take(); lines != nil {
			t.Errorf("logged: %q", lines)
		}
	})
}
