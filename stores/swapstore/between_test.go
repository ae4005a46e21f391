package swapstore_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// A take of several keys over a Swapper charges all or none, whatever happens
// between its steps.
func TestATakeOverASwapperChargesAllOrNone(t *testing.T) {
	eachBetween(t, func(b *between, events map[int]func(b *between) error) {
		b.charge("a", "c")
		failures := b.failures(events)
		b.at(events)
		d, err := b.l.Take(b.ctx, 1, b.hits()...)
		switch {
		case err != nil && d.Allowed:
			b.t.Errorf("allowed, with the error %v", err)
		case err != nil && !errors.Is(err, errFault) && !errors.Is(err, context.Canceled) && !errors.Is(err, core.ErrContended):
			b.t.Error(err)
		}
		// A store that fails while hits are given back keeps those of one key.
		if own := b.own(); d.Allowed && own != len(betweenRules) || !d.Allowed && own > *failures {
			b.t.Errorf("allowed %v, %v: %d keys are charged after %d failures", d.Allowed, err, own, *failures)
		}
		if err == nil && !d.Allowed { // the results are those after the charges were given back
			for s := range d.Limits() {
				if want := betweenQuota - b.charged[s.Rule]; s.Remaining != want {
					b.t.Errorf("rule %s: %d hits remain, want %d", s.Rule, s.Remaining, want)
				}
			}
		}
	})
}

// A request whose client has gone is settled all the same, and a refund takes
// back no charge of others that came in between. If the store fails for one
// key, the others are given back.
func TestARequestOverASwapperIsSettledWhateverHappens(t *testing.T) {
	eachBetween(t, func(b *between, events map[int]func(b *between) error) {
		r := floodgatetest.NewRequest("GET", "/", floodgatetest.Context(b.ctx))
		d := b.l.Check(r)
		if !d.Allowed {
			b.t.Fatal(d)
		}
		failures := b.failures(events)
		b.at(events)
		b.l.Settle(r, d, core.Outcome{Status: 200})
		own := b.own()
		contended := 0
		if len(events) > 10 {
			contended = 1
		}
		if own > *failures+contended || (own > 0) != (b.l.Stats().Failed == 1) {
			b.t.Errorf("after %d failures the hits of %d keys are still charged; Stats %+v", *failures, own, b.l.Stats())
		}
	})
}

// The pauses between attempts do not grow without end.
func TestAnOvertakenOperationPausesForMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attempts = 200
		s := newSwapper()
		l := newLimiter(t, core.Config{Name: "l", Log: slog.New(slog.DiscardHandler), Store: core.Must(swapstore.New(s, swapstore.Config{Attempts: attempts})), Rules: []core.Rule{
			{Name: "r", Limits: []core.Limit{core.PerHour(3)}},
		}})
		name := core.StoreRule{Name: "r"}.StoredKey("l", []byte("k\x00"))
		s.before = func(step int) error {
			s.values[name] = swapstore.Value{Value: s.values[name].Value, Version: -step} // somebody else is faster
			return nil
		}
		begin := time.Now()
		_, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
		if took := time.Since(begin); !errors.Is(err, core.ErrContended) || took > attempts*12800*time.Microsecond || took < 100*time.Millisecond {
			t.Errorf("%v after %v, want ErrContended after at most 12.8 ms for each of %d attempts", err, took, attempts)
		}
	})
}
