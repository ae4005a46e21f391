package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// The head of a line goes away, and what it has found holds no longer, or was of a store that is
// away: the next one asks at once.
func TestTheNextHeadDoesNotTrustWhatHoldsNoLonger(t *testing.T) {
	for _, name := range []string{"Reset", "Degraded"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAsked()
				config := forgiving()
				config.Store = s
				l, c := newLimiter(t, config, nil), newCrowd()
				if name == "Reset" {
					l.Check(&request{})
				} else {
					s.after = func(_ context.Context, b *core.Batch) {
						s.after = nil
						b.Allowed, b.Degraded = false, true
						b.Items[0].Results[0] = core.Result{ResetAfter: time.Minute, MoreAfter: time.Minute, RetryAfter: time.Minute}
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				c.come(0, func() (core.Decision, error) { return l.Wait(ctx, 1, waitedFor) })
				c.come(1, func() (core.Decision, error) { return l.Wait(t.Context(), 1, waitedFor) })
				if n := l.Stats().Waiting; n != 2 {
					t.Fatalf("%d requests wait", n)
				}
				time.Sleep(time.Second)
				cancel()
				if name == "Reset" {
					if err := l.Reset(t.Context(), waitedFor); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if d, done := c.of(1); !done || !d.Allowed || d.at != time.Second {
					t.Errorf("%t, %v at %v", done, d.Decision, d.at)
				}
			})
		})
	}
}

// What a store says of one take is not said of the next one.
func TestTheFlagsOfATakeEndWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(time.Minute, core.Limit{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow})
		config.Store = s
		config.Rules = append(config.Rules, core.Rule{Name: "other", Key: static("k"), Limits: []core.Limit{core.PerHour(5)}})
		l := newLimiter(t, config, nil)
		l.Check(&request{})
		s.before = func(b *core.Batch) {
			if b.Degraded || b.Cached || b.Items[1].Unknown {
				t.Errorf("asked with degraded %t, cached %t, unknown %t", b.Degraded, b.Cached, b.Items[1].Unknown)
			}
		}
		s.after = func(_ context.Context, b *core.Batch) {
			s.after = nil
			b.Degraded, b.Cached, b.Items[1].Unknown = true, true, true
		}
		if d := l.Check(&request{}); !d.Allowed || d.Waited() == 0 || d.Degraded {
			t.Errorf("%v after %v, degraded %t", d, d.Waited(), d.Degraded)
		}
	})
}
