package denycache_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

func TestTheShortestLongest(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	for longest, ok := range map[time.Duration]bool{time.Millisecond: true, time.Millisecond - 1: false, -time.Second: false} {
		if _, err := denycache.New(memory, denycache.Config{Longest: longest}); (err == nil) != ok {
			t.Errorf("Longest: %v: %v", longest, err)
		}
	}
}

func TestMaxKeysIsKept(t *testing.T) {
	const keys = 1000
	for maxKeys, want := range map[int]int{0: 0, 1: keys - 64} { // a table has 64 shards
		f := newFixture(t, denycache.Config{MaxKeys: maxKeys}, hourly(0))
		all := func() {
			for i := range keys {
				f.take(f.item(0, fmt.Sprint(i), 1))
			}
		}
		all()
		if n := f.asked(all); int(n) < want || want == 0 && n > 0 {
			t.Errorf("MaxKeys: %d: the store is asked about %d of %d denied keys, want %d or more", maxKeys, n, keys, want)
		}
	}
}

// A denial that lasts as long as one is remembered needs no second look.
func TestADenialOfJustTheLongestTime(t *testing.T) {
	f := newFixture(t, denycache.Config{Longest: time.Second}, rule(core.Limit{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow}))
	f.take(f.item(0, "k", 1))
	f.take(f.item(0, "k", 1))
	f.clock.Advance(950 * time.Millisecond)
	if n := f.asked(func() { f.take(f.item(0, "k", 1)) }); n != 0 {
		t.Errorf("the store was asked %d times within the wait, want 0", n)
	}
}

// A take that looks at a key without charging it does not change its denials.
func TestALookForgetsNothing(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.take(f.item(0, "k", 1))
	f.take(f.item(0, "k", 1))
	if !f.take(f.item(0, "k", 0), f.item(0, "other", 1)).Allowed {
		t.Fatal("a look is denied")
	}
	if n := f.asked(func() { f.take(f.item(0, "k", 1)) }); n != 0 {
		t.Errorf("the store was asked %d times for a denied key, want 0", n)
	}
}
