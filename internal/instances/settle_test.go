package instances_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// What a request of the tests below reserves, and the most that it uses.
const (
	reserved = 10
	mostUsed = 30
)

// settle takes what a request reserves, and settles it to what it has used, until it
// has been denied often enough. It writes "used" and what was used, or "lost" if nobody told it
// whether it was allowed.
func (w work) settle(store opened, stopped <-chan struct{}) error {
	for denied := 0; denied < enough; {
		select {
		case <-stopped:
			return nil
		default:
		}
		batch := w.batch(0)
		batch.Items[0].Cost = reserved
		switch err := store.counters.Do(context.Background(), batch); {
		case errors.Is(err, core.ErrNotCharged):
			continue
		case err != nil:
			fmt.Println("lost")
			continue
		case !batch.Allowed:
			denied++
			continue
		}
		used := rand.Int64N(mostUsed + 1)
		fmt.Println("used", used)
		batch.Op = core.OpCharge
		if batch.Items[0].Cost = used - reserved; used < reserved {
			batch.Items[0].Cost, batch.Op = reserved-used, core.OpRefund
		}
		for {
			err := store.counters.Do(context.Background(), batch)
			if !errors.Is(err, core.ErrNotCharged) {
				break // done, or nobody knows: once is enough
			}
		}
	}
	return nil
}

// Processes that reserve an estimate and settle to what they have used store exactly what
// was used, and what requests have reserved whose reply was lost, and exceed the quota by no more than the estimates of
// those that ran at that moment were too low.
func TestProcessesSettleWhatTheyReserve(t *testing.T) {
	const quota = 20_000
	for _, lose := range []bool{false, true} {
		for _, algorithm := range []core.Algorithm{core.SlidingWindow, core.FixedWindow, core.TokenBucket} {
			t.Run(fmt.Sprintf("%v, replies are lost %t", algorithm, lose), func(t *testing.T) {
				server := redistest.Start(t)
				proxy := faultproxy.Start(t, server.Addr)
				w := work{Kind: "redis", Addr: proxy.Addr, Limiter: "settle", AtOnce: 16, Settles: true, Limits: [][]core.Limit{{{Name: "l", Quota: quota, Window: core.MaxWindow, Algorithm: algorithm}}}}
				f := newFleet(t, w, processes)
				f.begin()
				for i := 0; lose && i < 20; i++ {
					before := proxy.Lost()
					proxy.Fail(faultproxy.Cut, 1)
					processtest.WaitFor(t, "a lost reply", func() bool { return proxy.Lost() > before || f.done() })
				}
				f.end()
				used, lost := int64(0), int64(0)
				for _, p := range f.all {
					lost += int64(p.Count("lost"))
					for n := range int64(mostUsed + 1) {
						used += n * int64(p.Count(fmt.Sprint("used ", n)))
					}
				}
				w.Addr = server.Addr
				w.Limits[0][0].Quota = 4 * quota // so that what is above the quota can be seen
				stored := w.stored(t)
				t.Logf("%d were used, and %d requests were lost; %d are stored", used, lost, stored)
				// A lost request has reserved its part, or has not arrived.
				if rest := stored - used; rest%reserved != 0 || rest < 0 || rest > lost*reserved {
					t.Errorf("%d are stored, and %d were used: the difference is not what some of %d lost requests have reserved", stored, used, lost)
				}
				if most := int64(quota + processes*16*(mostUsed-reserved)); stored > most || stored < quota-mostUsed {
					t.Errorf("%d are stored of a quota of %d, want at most %d", stored, quota, most)
				}
				if lose && proxy.Lost() == 0 {
					t.Error("no reply was lost")
				}
			})
		}
	}
}

// done reports whether all processes are done.
func (f *fleet) done() bool {
	for _, p := range f.running {
		if p.Count("done") == 0 {
			return false
		}
	}
	return true
}

// stored returns how many hits the key that all share has.
func (w work) stored(t *testing.T) int64 {
	t.Helper()
	store, err := w.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batch := w.batch(0)
	batch.Items[0].Cost = 0
	if err := store.counters.Do(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if err := store.close(); err != nil {
		t.Error(err)
	}
	return w.Limits[0][0].Quota - batch.Items[0].Results[0].Remaining
}
