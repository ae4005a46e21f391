package memtable_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/internal/memtable"
)

// The hits of a sliding log take at most the bytes that MemoryConfig.MaxKeys
// documents, whatever one take costs and however the logs have grown.
func TestTheLogOfAKeyTakesTheDocumentedBytes(t *testing.T) {
	now := int64(1_764_000_000_000_000)
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 1000, Clock: func() time.Time { return time.UnixMicro(now) }}))
	limit := core.Limit{Quota: core.MaxLogQuota, Window: time.Minute, Algorithm: core.SlidingLog}
	bound := core.Must(m.Open("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{limit, {Quota: core.MaxQuota, Window: 24 * time.Hour}}}}))
	take := func(key string, cost int64) {
		b := core.Batch{Items: []core.Item{{Key: []byte(key), Cost: cost, Results: make([]core.Result, 2)}}}
		if err := do(context.Background(), bound, core.OpTake, &b); err != nil || !b.Allowed {
			t.Fatal(b, err)
		}
	}
	held := func() int {
		_, inBlocks := memtable.Of(m).Words()
		return 8 * inBlocks
	}

	take("one take", core.MaxLogQuota)
	if got := held(); got > 128<<10 {
		t.Errorf("one take of %d hits takes %d bytes, documented are 128 KiB", core.MaxLogQuota, got)
	}
	// A key is left at every length while many grow past it.
	want := 128 << 10
	for length := int64(4); length < core.MaxLogQuota; length *= 2 {
		cost := length / 2
		if length == 4 {
			cost = length
		}
		for i := range 20 {
			take(fmt.Sprint("grows", i), cost)
		}
		take(fmt.Sprint("stays", length), length)
		want += 8 * 2 * int(length+1)
	}
	want += 20 * 128 << 10
	if got := held(); got > want+11*4096 {
		t.Errorf("the logs take %d bytes, documented are %d", got, want)
	}
	now += 2 * time.Minute.Microseconds()
	for i := range 100 { // the keys stay, for the day's limit; their logs go
		b := core.Batch{Items: []core.Item{{Key: fmt.Append(nil, "new", i), Cost: 1, Results: make([]core.Result, 2)}}}
		if err := do(context.Background(), bound, core.OpTake, &b); err != nil {
			t.Fatal(err)
		}
	}
	if got, most := held(), 100*64+4096; got > most {
		t.Errorf("%d bytes are held for logs, nearly all of which are empty; at most %d expected", got, most)
	}
}

// A rule that is gone leaves no entry behind.
func TestRulesThatComeAndGoLeaveNothing(t *testing.T) {
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 10_000}))
	bound := core.Must(m.Open("l", nil))
	for i := range 500 {
		bound = core.Must(bound.Reopen([]core.StoreRule{{Name: fmt.Sprint("r", i), Limits: []core.Limit{core.PerHour(3)}}, {Name: "stays", Limits: []core.Limit{core.PerHour(3)}}}))
		for key := range 50 {
			b := core.Batch{Items: []core.Item{{Rule: key % 2, Key: []byte{byte(i), byte(key)}, Cost: 1, Results: make([]core.Result, 1)}}}
			if err := do(context.Background(), bound, core.OpTake, &b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := memtable.Of(m).MostTables(); n > 3 {
		t.Fatalf("a shard has %d tables for two rules", n)
	}
	if n := memtable.Of(m).Rules(); n != 2 {
		t.Errorf("%d rules", n)
	}
}

// Counters that are still in use after their rule has gone find no key, and not
// those of the rule that has got the place.
func TestAnOldBoundSeesNothingOfOtherRules(t *testing.T) {
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 100}))
	old := core.Must(m.Open("l", []core.StoreRule{{Name: "old", Limits: []core.Limit{core.PerHour(3)}}}))
	next := core.Must(old.Reopen(nil))
	next = core.Must(next.Reopen([]core.StoreRule{{Name: "new", Limits: []core.Limit{{Quota: 5, Window: 24 * time.Hour}, core.PerHour(9)}}}))
	b := core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 4, Results: make([]core.Result, 2)}}}
	if err := do(context.Background(), next, core.OpTake, &b); err != nil || !b.Allowed {
		t.Fatal(b, err)
	}
	b = core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Results: make([]core.Result, 1)}}}
	for range 5 {
		if err := do(context.Background(), old, core.OpTake, &b); err != nil || b.Items[0].Results[0].Remaining != 2 {
			t.Fatal(b, err)
		}
	}
	if err := do(context.Background(), old, core.OpReset, &b); err != nil || m.Len() != 1 {
		t.Fatalf("Len %d, error %v", m.Len(), err)
	}
}

// Old Counters may be used between the Reopen that removes their rule and the one
// that gives the rule's id to another.
func TestARuleCountsAfterAnOldBoundWasUsed(t *testing.T) {
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 100}))
	old := core.Must(m.Open("l", []core.StoreRule{{Name: "old", Limits: []core.Limit{core.PerHour(3)}}}))
	next := core.Must(old.Reopen(nil))
	b := core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Results: make([]core.Result, 1)}}}
	if err := do(t.Context(), old, core.OpTake, &b); err != nil || m.Len() != 0 {
		t.Fatalf("a take of a rule that is gone: %d keys are held, want 0; error %v", m.Len(), err)
	}
	next = core.Must(next.Reopen([]core.StoreRule{{Name: "new", Limits: []core.Limit{core.PerHour(3)}}}))
	for i := range int64(4) {
		if err := do(t.Context(), next, core.OpTake, &b); err != nil || b.Allowed != (i < 3) {
			t.Errorf("take %d of 3 per hour: allowed %v, error %v", i+1, b.Allowed, err)
		}
	}
}
