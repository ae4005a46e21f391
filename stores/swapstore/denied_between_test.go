package swapstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// A denied hit is counted after another writer has changed the value. The limit that denied it is
// charged whatever it admits now, and the results are those of the new value.
func TestADeniedHitThatIsOvertaken(t *testing.T) {
	hour := core.Limit{Quota: 2, Window: time.Hour, Algorithm: core.FixedWindow, CountDenied: true}
	day := core.Limit{Quota: 10, Window: 24 * time.Hour, Algorithm: core.FixedWindow}
	c := newClock()
	for name, row := range map[string]struct {
		other     func(b core.Bound, batch *core.Batch) error
		hour, day int64         // hits that are counted in the end
		wait      time.Duration // that the decision says
	}{
		"somebody else is charged": {func(b core.Bound, batch *core.Batch) error { return b.Charge(t.Context(), batch) }, 2 + 3 + 1, 2 + 3, time.Hour},
		"somebody else resets it":  {func(b core.Bound, batch *core.Batch) error { return b.Reset(t.Context(), batch) }, 1, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSwapper()
			b, err := core.Must(swapstore.New(s, swapstore.Config{Clock: c.Now})).Bind("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{hour, day}}})
			if err != nil {
				t.Fatal(err)
			}
			of := func(cost int64) *core.Batch {
				return &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: cost, Results: make([]core.Result, 2)}}}
			}
			if err := b.Take(t.Context(), of(2)); err != nil {
				t.Fatal(err)
			}
			s.before = func(step int) error {
				if step != 4 { // the Swap of the denied take
					return nil
				}
				s.before = nil
				return row.other(b, of(3))
			}
			batch := of(1)
			if err := b.Take(t.Context(), batch); err != nil || batch.Allowed || s.before != nil {
				t.Fatalf("%s: allowed %t, %v", name, batch.Allowed, err)
			}
			first, second := batch.Items[0].Results[0], batch.Items[0].Results[1]
			if first.Allowed || first.Remaining != max(0, 2-row.hour) || first.RetryAfter != row.wait {
				t.Errorf("%s: the limit that denies says %+v, want a wait of %v", name, first, row.wait)
			}
			if !second.Allowed || second.Remaining != 10-row.day {
				t.Errorf("%s: the other limit says %+v, want %d left", name, second, 10-row.day)
			}
			look := of(0)
			look.Peek, look.Items[0].Quotas = true, []int64{100, 100} // so that the results tell the counts
			if err := b.Take(t.Context(), look); err != nil {
				t.Fatal(err)
			}
			if hour, day := 100-look.Items[0].Results[0].Remaining, 100-look.Items[0].Results[1].Remaining; hour != row.hour || day != row.day {
				t.Errorf("%s: %d and %d hits are counted, want %d and %d", name, hour, day, row.hour, row.day)
			}
		})
	}
}
