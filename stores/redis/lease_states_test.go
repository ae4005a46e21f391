package redisstore_test

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// slots is a limit of ten leases of half a minute.
var slots = core.Limit{Name: "slots", Quota: 10, Window: 30 * time.Second, Algorithm: core.Leases}

// Where the leases of a value begin if the rule's first limit is slots, and how long each is.
const leasesAt, leaseSize = 20, 19

// lease takes, renews or releases a lease of the key k.
func (f *formatted) lease(verb string, lease uint64) *core.Batch {
	f.t.Helper()
	batch := one("k", 1, f.limits)
	batch.Items[0].Lease = lease
	op := core.OpTake
	switch verb {
	case "renew":
		op = core.OpRenew
	case "release":
		op = core.OpRelease
	}
	if err := storetest.Do(f.t.Context(), f.bound, op, batch); err != nil {
		f.t.Fatal(err)
	}
	return batch
}

// lives returns for how long the value of the key k stays, to the second, without the slack.
func (f *formatted) lives() time.Duration {
	f.t.Helper()
	ttl, err := strconv.ParseInt(strings.TrimPrefix(f.server.MustDo("PTTL", stored(f.t, "k")), ":"), 10, 64)
	if err != nil {
		f.t.Fatal(err)
	}
	return (time.Duration(ttl) * time.Millisecond).Round(time.Second) - time.Minute
}

// A lease without slots, and one with more than there can be, is no state of leases.
func TestLeasesThatNoProgramWrites(t *testing.T) {
	server := redistest.Start(t)
	for cost, readable := range map[uint32]bool{0: false, 1: true, 1<<31 - 1: true, 1 << 31: false} {
		f := newFormatted(t, server, slots)
		server.MustDo("DEL", stored(t, "k"))
		f.lease("take", 7)
		v := f.value()
		if len(v) != leasesAt+leaseSize {
			t.Fatalf("a value of a lease has %d bytes", len(v))
		}
		binary.LittleEndian.PutUint32(v[leasesAt+15:], cost)
		f.set(v)
		batch := one("k", 1, 1)
		if err := storetest.Do(t.Context(), f.bound, core.OpPeek, batch); err != nil {
			t.Fatal(err)
		}
		left, retry := max(0, 10-int64(cost)), time.Second
		if !readable {
			left, retry = 0, slots.Window
		} else if left > 0 {
			retry = 0
		}
		if r := batch.Items[0].Results[0]; r.Remaining != left || r.RetryAfter != retry {
			t.Errorf("a cost of %d: %+v, want %d left, and %v to wait", cost, r, left, retry)
		}
	}
}

// A state of no leases is one, and a state without their number is none.
func TestAStateOfNoLeases(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), slots)
	f.lease("take", 7)
	head := f.value()[11 : leasesAt-2]
	for state, left := range map[string]int64{"\x00\x00": 9, "\x00": 0, "": 0} {
		f.set(append([]byte{2}, record(f.in(time.Hour), head[0], append(slices.Clone(head[1:]), state...)...)...))
		if got := f.lease("take", 7).Items[0].Results[0].Remaining; got != left {
			t.Errorf("the state %x: %d left, want %d", state, got, left)
		}
	}
}

// A value holds 40,000 leases at most, as a state in the process does.
func TestAValueHoldsSoManyLeases(t *testing.T) {
	const most = 40_000
	f := newFormatted(t, redistest.Start(t), slots)
	f.lease("take", 1)
	v := f.value()
	lease := v[leasesAt:]
	body := binary.LittleEndian.AppendUint16(v[leasesAt-8:leasesAt-2:leasesAt-2], most-1)
	for i := range uint64(most - 1) {
		body = append(binary.LittleEndian.AppendUint64(body, i+1), lease[8:]...)
	}
	expiry := append(append([]byte(nil), v[4:11]...), 0)
	f.set(append([]byte{v[0]}, record(int64(binary.LittleEndian.Uint64(expiry)), v[11], body...)...))
	for i, want := range []int{most, most} {
		f.lease("renew", uint64(most+i))
		if got := (len(f.value()) - leasesAt) / leaseSize; got != want {
			t.Errorf("after %d more: %d leases, want %d", i+1, got, want)
		}
	}
}

// The bytes behind the leases are no lease, whatever they are.
func TestWhatFollowsTheLeasesIsNone(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), slots, hour)
	f.lease("take", 7)
	v := f.value()
	next := binary.LittleEndian.Uint64(v[leasesAt+leaseSize:])
	f.lease("release", next)
	if got := f.value(); string(got) != string(v) {
		t.Errorf("%x became %x", v, got)
	}
	if f.lease("take", next); f.take().Items[0].Results[0].Remaining != 8 {
		t.Error("it cannot be the number of a lease")
	}
}

// A lease is found although its bytes are also elsewhere: at the end of the cost before it, and across
// the end of that and the beginning of another lease.
func TestALeaseIsFoundAmongBytesLikeIt(t *testing.T) {
	server := redistest.Start(t)
	for _, leases := range [][]struct {
		lease uint64
		cost  int64
	}{
		{{1, 0x2e000000}, {dots, 1}},
		{{1, manyDots}, {1<<56 | manyDots, 1}, {dots, 1}},
	} {
		f := newFormatted(t, server, slots)
		server.MustDo("DEL", stored(t, "k"))
		for _, l := range leases {
			batch := one("k", l.cost, 1)
			batch.Items[0].Lease = l.lease
			if err := storetest.Do(t.Context(), f.bound, core.OpRenew, batch); err != nil {
				t.Fatal(err)
			}
		}
		before := f.value()
		if got := (len(before) - leasesAt) / leaseSize; got != len(leases) {
			t.Errorf("%d leases, want %d: %x", got, len(leases), before)
		}
		f.lease("release", dots)
		var want, got []string // the order means nothing
		for some := range slices.Chunk(before[leasesAt:], leaseSize) {
			if binary.LittleEndian.Uint64(some) != dots {
				want = append(want, string(some))
			}
		}
		for some := range slices.Chunk(f.value()[leasesAt:], leaseSize) {
			got = append(got, string(some))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%x became %x", before, f.value())
		}
	}
}

// A value stays until the last of its leases ends, in whatever order they were taken, renewed
// and released.
func TestAValueStaysUntilItsLastLeaseEnds(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), slots)
	see := func(when string, want time.Duration) {
		t.Helper()
		if got := f.lives(); got != want {
			t.Errorf("%s: it stays for %v, want %v", when, got, want)
		}
	}
	f.lease("take", 1)
	see("the first", 30*time.Second)
	f.clock.Advance(10 * time.Second)
	f.lease("take", 2)
	see("the second", 30*time.Second)
	f.clock.Advance(10 * time.Second)
	f.lease("take", 3)
	f.lease("release", 3)
	see("the third is released", 20*time.Second)
	f.clock.Advance(-10 * time.Second)
	f.lease("take", 4)
	f.clock.Advance(-5 * time.Second)
	f.lease("take", 5) // ends before the others
	see("the clock is set back", 35*time.Second)
	if batch := one("k", 1, 1); storetest.Do(t.Context(), f.bound, core.OpGrant, batch) != nil || !batch.Items[0].Results[0].Allowed {
		t.Errorf("a grant: %+v", batch.Items[0].Results)
	}
	see("a grant, which writes all again", 35*time.Second)

	f.clock.Advance(-time.Hour)
	if batch := f.take(); batch.Items[0].Results[0].Remaining != 6 {
		t.Errorf("%+v, want the leases 1, 2, 4 and 5", batch.Items[0].Results)
	}
	// A lifetime that is longer by less than a tenth of the slack stays.
	see("the clock is set back far: all leases end a window from now", 35*time.Second)
}

// Who is denied, or releases what is not there, writes nothing.
func TestWhatChangesNoLeaseWritesNothing(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), slots)
	for i := range uint64(10) {
		f.lease("take", i+1)
	}
	f.clock.Advance(10 * time.Second)
	f.server.MustDo("CONFIG", "RESETSTAT")
	if f.lease("take", 11).Allowed {
		t.Error("allowed above the quota")
	}
	f.lease("release", 11)
	stats := f.server.MustDo("INFO", "commandstats")
	for _, write := range []string{"set", "del", "pexpire"} {
		if strings.Contains(stats, "cmdstat_"+write+":") {
			t.Errorf("the server ran %s:\n%s", write, stats)
		}
	}
}

// A take of several keys in different slots that is overtaken gives back the leases that it has got,
// and its results say so.
func TestLeasesOfATakeThatIsOvertakenAreGivenBack(t *testing.T) {
	cluster, client := newCluster(t)
	keys := keysOn(cluster, t.Name())
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{slots}}}
	rival := bind(t, client, rules, redisstore.Timeout(patience))
	own := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = own.Close() })
	ask := func(b core.Counters, key string, op core.Op, lease uint64) core.Result {
		t.Helper()
		batch := one(key, 1, 1)
		batch.Items[0].Lease = lease
		if err := storetest.Do(t.Context(), b, op, batch); err != nil {
			t.Fatal(err)
		}
		return batch.Items[0].Results[0]
	}
	use := func() error {
		for i := range uint64(10) {
			ask(rival, keys[2], core.OpTake, i+1)
		}
		return nil
	}
	own.AddHook(before{"take", stored(t, keys[2]), use, new(atomic.Bool)})
	b := bind(t, own, rules, redisstore.Timeout(patience))
	batch := &core.Batch{}
	for i, k := range keys {
		ask(rival, k, core.OpTake, 100)
		batch.Items = append(batch.Items, one(k, 2, 1).Items...)
		batch.Items[i].Lease = 101
	}
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed {
		t.Fatalf("allowed %v, error %v", batch.Allowed, err)
	}
	for i, want := range []int64{9, 9, 0} {
		if got := batch.Items[i].Results[0].Remaining; got != want {
			t.Errorf("key %d: the decision says that %d remain, want %d", i, got, want)
		}
		if got := ask(rival, keys[i], core.OpPeek, 0).Remaining; got != want {
			t.Errorf("key %d: %d remain, want %d", i, got, want)
		}
	}
}
