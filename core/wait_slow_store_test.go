package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A store takes its time to give hits back: the requests that wait get their turn once it has done so, and
// not before, when they would find nothing.
func TestWhatASlowStoreGivesBackEndsAWait(t *testing.T) {
	for name, giveBack := range givesBack {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow, config, c := false, forgiving(), newCrowd()
				config.Store = &around{core.Must(core.NewMemory(core.MemoryConfig{})), func(ctx context.Context, c core.Counters, b *core.Batch) error {
					if slow && b.Op&(core.OpTake|core.OpPeek|core.OpCharge) == 0 {
						time.Sleep(time.Second)
					}
					return c.Do(ctx, b)
				}}
				l := newLimiter(t, config, nil)
				first := l.Check(&request{})
				if name == "Block" {
					_ = l.Reset(t.Context(), waitedFor)
					_ = l.Block(t.Context(), time.Minute, waitedFor)
				}
				for i := range 2 {
					c.come(i, func() (core.Decision, error) { return l.Wait(t.Context(), 1, waitedFor) })
				}
				slow = true
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
