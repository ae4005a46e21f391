package resilient

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Of too many blocks, those that end last are kept.
func TestTheBlocksThatAreKept(t *testing.T) {
	u := &untold{most: 3}
	key := func(i int) owedKey { return owedKey{rule: "r", key: fmt.Sprint(i)} }
	for i, until := range []int64{30, 10, 20, 40, 5} {
		u.add(key(i), until, 1)
	}
	for i, want := range []bool{true, false, true, true, false} {
		if u.has(key(i), 1) != want {
			t.Errorf("block %d is there: %t", i, !want)
		}
	}
	u.add(key(5), 50, 35) // two have ended
	if len(u.keys()) != 2 || u.n.Load() != 2 || !u.has(key(3), 39) || u.has(key(3), 40) || u.claim(key(3), 40, true) != nil {
		t.Errorf("%v are left", u.keys())
	}
	replaced := u.claim(key(5), 35, true)
	u.add(key(5), 50, 35)
	if u.told(key(5), replaced, true, false); !u.has(key(5), 35) {
		t.Error("the store was told of the block before this one")
	}
	if !u.due(49) || u.due(50) || !u.none() {
		t.Errorf("%d are left, or they are due", u.n.Load())
	}
}

// What the next request tells the store is not due in the background.
func TestBlocksThatAreNotDue(t *testing.T) {
	u := &untold{most: 3}
	u.add(owedKey{rule: "r", key: "hash", hashed: true}, 10, 1)
	k := owedKey{rule: "r", key: "k"}
	u.add(k, 10, 1)
	for _, failed := range []bool{false, true} {
		b := u.claim(k, 1, true)
		if b == nil || u.claim(k, 1, false) != nil {
			t.Fatal("claimed by nobody, or twice")
		}
		u.told(k, b, false, failed)
		if u.due(1) == failed || (u.claim(k, 1, true) == nil) != failed {
			t.Errorf("failed: %t, due: %t", failed, !failed)
		}
		if !failed {
			u.told(k, u.blocks[k], false, false)
		}
	}
}

// locating is a store whose ServerOf panics.
type locating struct{ core.Bound }

func (locating) ServerOf(int, []byte) string { panic("where") }

// A store that panics, and a rule that is gone, do not end the goroutine that tells of blocks.
func TestBlocksThatCannotBeTold(t *testing.T) {
	s := core.Must(New(core.Must(core.NewMemory(core.MemoryConfig{})), Config{Log: slog.New(slog.DiscardHandler)}))
	defer func() { _ = s.Close() }()
	of, err := s.Bind("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(1)}}})
	if err != nil {
		t.Fatal(err)
	}
	b := of.(*bound)
	u := &b.owed.untold
	k, until := owedKey{rule: "r", key: "k"}, b.now()+time.Hour.Microseconds()
	u.add(owedKey{rule: "gone", key: "k"}, until, b.now())
	u.add(k, until, b.now())
	b.where = locating{}
	b.tellDueBlocks(context.Background())
	if keys := u.keys(); len(keys) != 1 || keys[0] != k {
		t.Errorf("left: %v", keys)
	}
	b.where = nil
	b.tellDueBlocks(context.Background())
	if !u.none() {
		t.Error("the store has not been told")
	}
}
