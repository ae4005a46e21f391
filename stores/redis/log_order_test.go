package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// A sliding log in which one time is later than the next cannot be read,
// wherever that is: takes are decided as if the key was new, and none fails.
func TestALogThatIsNotInOrderIsUnreadable(t *testing.T) {
	server := redistest.Start(t)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{{Quota: 40, Window: time.Minute, Algorithm: core.SlidingLog}}}}
	b := bind(t, newClient(t, server.Addr), rules, redisstore.Timeout(patience), redisstore.Clock(clock.Now), redisstore.WithoutDenialCache())
	for n := 1; n <= 24; n++ {
		key := fmt.Sprint(n)
		for range n {
			take(t, b, key)
			clock.Advance(time.Millisecond)
		}
		name := core.StoreRule{Name: "r"}.StoredKey(t.Name(), []byte(key))
		whole := server.MustDo("GET", name)
		if got := take(t, b, key).Items[0].Results[0].Remaining; got != int64(40-n-1) {
			t.Fatalf("%d hits in order, and one more: %d remain of 40", n, got)
		}
		for i := range n - 1 { // the i-th hit is 50 s late
			at := len(whole) - 7*(n-i)
			damaged := whole[:at+3] + string([]byte{whole[at+3] + 3}) + whole[at+4:]
			server.MustDo("SET", name, damaged)
			for j := range 3 {
				batch := take(t, b, key)
				if r := batch.Items[0].Results[0]; !batch.Allowed || r.Remaining != int64(39-j) {
					t.Fatalf("hit %d of %d is damaged, take %d: %+v, want %d left", i, n, j, r, 39-j)
				}
			}
		}
	}
}

// A refund takes away hits of the time of its charge, and none of a microsecond before or
// after, also if it gives back more than was charged then.
func TestARefundOfALogTakesHitsOfItsTime(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.SlidingLog})
	var charges []*core.Batch
	for range 3 {
		charges = append(charges, f.take())
		f.clock.Advance(time.Microsecond)
	}
	value := f.value()
	hits := len(value) - 3*7
	charges[1].Items[0].Cost = 5
	if err := storetest.Do(t.Context(), f.bound, core.OpRefund, charges[1]); err != nil {
		t.Fatal(err)
	}
	if got := f.value(); string(got[hits:]) != string(value[hits:hits+7])+string(value[hits+14:]) {
		t.Errorf("of the hits %x, %x are left, want the first and the last", value[hits:], got[hits:])
	}
}
