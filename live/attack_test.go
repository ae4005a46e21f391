package live_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

// An attack with keys out of two millions: half of the requests follow a Zipf distribution, the others
// are uniform noise. The page shows the keys that were denied most, and keeps no more memory
// in the second half of the attack than in the first.
func TestAnAttackWithManyKeys(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // need not be secret
	zipf := rand.NewZipf(r, 1.1, 1, 1_000_000)
	s := newSite(t, live.Config{ShowKey: func(_, _, key string) string { return key }}, core.Config{
		Store: core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 50_000})), // memory of its own that does not grow
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(1)}}},
	})
	denied := make([]int, 2_000_001)
	attack := func(requests int) {
		for i := range requests {
			k := int(zipf.Uint64()) //nolint:gosec // at most a million
			if i%2 == 0 {
				k = 1_000_000 + r.IntN(1_000_000)
			}
			if !s.limiter.Allow(context.Background(), core.Hit{Rule: "user", Key: strconv.Itoa(k)}) {
				denied[k]++
			}
		}
	}
	attack(150_000)
	before := inUse()
	attack(150_000)
	grown := inUse() - before
	t.Logf("the heap has grown by %d bytes in the second half", grown)
	if grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes in the second half", grown)
	}

	keys := make([]int, len(denied))
	for k := range keys {
		keys[k] = k
	}
	slices.SortFunc(keys, func(a, b int) int { return cmp.Compare(denied[b], denied[a]) })
	least := denied[keys[19]] // a key that was denied as often as the last of them is right too
	found, shown := 0, s.watch()().Limiters[0].Denied
	for _, k := range shown {
		if n, err := strconv.Atoi(k.Label); err == nil && denied[n] >= least {
			found++
		}
	}
	t.Logf("%d of the true top 20", found)
	if len(shown) != 20 || found < 19 {
		t.Errorf("%d keys are shown, %d of them of the true top 20", len(shown), found)
	}
}

// inUse returns the bytes that are in use.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // what the first one has only found to be unused in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // below 2^63
}
