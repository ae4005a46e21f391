package adaptertest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// waiting tests that requests wait for their turn if the limiter lets them.
func waiting(t *testing.T, a Adapter) {
	t.Run("a request over the limit waits", func(t *testing.T) {
		l := hooktest.Limiter(t, core.Config{Store: core.Must(core.NewMemory(core.MemoryConfig{})), MaxWait: time.Minute, Rules: []core.Rule{{
			Name: "r", Key: keyfuncs.Static("k"), Limits: []core.Limit{{Quota: 1, Window: 100 * time.Millisecond, Algorithm: core.FixedWindow}},
		}}})
		var waited time.Duration
		c := direct(t, a.Serve(t, App{Limits: []Limit{{Checker: l, Expose: true}}, Routes: []Route{{Method: http.MethodGet, Pattern: "/", Handler: func(c Context) error {
			if d, ok := c.Decision(); ok {
				waited = max(waited, d.Waited)
			}
			return ok(c)
		}}}}))
		for range 100 { // on a busy machine, a request may come when the window of the one before has ended
			want(t, count(1, func(int) response { return c.get("/") }), http.StatusOK, 1)
			if waited > 0 && hooktest.Count(l).Waited > 0 {
				return
			}
		}
		t.Errorf("nobody has waited: %+v", hooktest.Count(l))
	})

	t.Run("a client that goes waits no longer", func(t *testing.T) {
		if !a.SeesCancel {
			t.Skip("the server does not tell handlers that a client has gone")
		}
		for _, protocol := range []string{"HTTP/1", "HTTP/2"} {
			begun, denied := make(chan struct{}, 1), make(chan core.Decision, 1)
			l := hooktest.Limiter(t, core.Config{MaxWait: 2 * time.Hour, Rules: []core.Rule{{
				Name: "r", Limits: []core.Limit{core.PerHour(1)},
				Key: func(dst []byte, _ core.Request) ([]byte, error) {
					begun <- struct{}{}
					return append(dst, "k"...), nil
				},
			}}, Hooks: hooktest.Funcs{OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
				denied <- d
				return core.DefaultHooks{}.OnDisallowed(r, d)
			}}})
			hit := core.Hit{Rule: "r", Key: "k"}
			if d, err := l.Take(context.Background(), 1, hit); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			leave(t, a, protocol, App{Limits: []Limit{{Checker: l}}, Routes: []Route{{Method: http.MethodPost, Pattern: "/", Handler: ok}}}, begun)
			select {
			case d := <-denied:
				if d.Allowed || !errors.Is(d.Err, context.Canceled) {
					t.Errorf("%s: %v, %v", protocol, d, d.Err)
				}
			case <-time.After(timeout):
				t.Fatalf("%s: the request still waits", protocol)
			}
			if s := hooktest.Count(l); s.Waiting != 0 {
				t.Errorf("%s: %+v", protocol, s)
			}
		}
	})
}
