package core_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// givesBack are the ways in which a key gets hits back before its window ends.
var givesBack = map[string]func(context.Context, *core.Limiter, core.Decision) error{
	"Reset":    func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.Reset(ctx, waitedFor) },
	"ResetAll": func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.ResetAll(ctx) },
	"Block":    func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.Block(ctx, 0, waitedFor) },
	"Adjust":   func(ctx context.Context, l *core.Limiter, d core.Decision) error { return l.Adjust(ctx, d, 0) },
	"Adjust after Settle": func(ctx context.Context, l *core.Limiter, d core.Decision) error {
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusOK})
		return l.Adjust(ctx, d, 0)
	},
	"Counts": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusNotFound})
		return nil
	},
	"Clears": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusNoContent})
		return nil
	},
	"SetCost": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		d.SetCost(0)
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusOK})
		return nil
	},
}

var waitedFor = core.Hit{Rule: "r", Key: "k"}

// forgiving is a configuration whose requests wait. They cost two hits of two, and the handler may say that it
// was less.
func forgiving() core.Config {
	config := patient(time.Minute, core.Limit{Quota: 2, Window: time.Minute, Algorithm: core.FixedWindow})
	rule := &config.Rules[0]
	rule.Cost = func(core.Request) (int64, error) { return 2, nil }
	rule.Counts = func(_ core.Request, o core.Outcome) bool { return o.Status != http.StatusNotFound }
	rule.Clears = func(_ core.Request, o core.Outcome) bool { return o.Status == http.StatusNoContent }
	return config
}

// A key gets hits back while requests wait for it: they get their turn at once.
func TestWhatIsGivenBackEndsAWait(t *testing.T) {
	for name, giveBack := range givesBack {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, c := newLimiter(t, forgiving(), nil), newCrowd()
				first := l.Check(&request{})
				if name == "Block" {
					_ = l.Reset(t.Context(), waitedFor)
					_ = l.Block(t.Context(), time.Minute, waitedFor)
				}
				for i := range 2 {
					c.come(i, func() (core.Decision, error) { return l.Wait(t.Context(), 1, waitedFor) })
				}
				if n := l.Stats().Waiting; n != 2 || !first.Allowed {
					t.Fatalf("%d requests wait, %v", n, first)
				}
				time.Sleep(time.Second)
				if err := giveBack(t.Context(), l, first); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if c.inOrder(t, 2); c.at(1) != time.Second {
					t.Errorf("the last one waited for %v", c.at(1))
				}
			})
		})
	}
}

// The hits come back just when a request has been denied, and before it is in line.
func TestWhatIsGivenBackBeforeTheLineIsNotMissed(t *testing.T) {
	for name, giveBack := range givesBack {
		if name == "Block" || name == "ResetAll" {
			continue // the store of this test can do neither
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, config := newAsked(), forgiving()
				config.Store = s
				l := newLimiter(t, config, nil)
				first := l.Check(&request{})
				s.after = func(ctx context.Context, b *core.Batch) {
					if !b.Allowed {
						s.after = nil
						if err := giveBack(ctx, l, first); err != nil {
							t.Error(err)
						}
					}
				}
				if d := l.Check(&request{}); !d.Allowed || d.Waited() != 0 || s.takes.Load() != 3 {
					t.Errorf("%v after %v, %d takes", d, d.Waited(), s.takes.Load())
				}
			})
		})
	}
}
