package core

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// The hits of a sliding log take at most the bytes that MemoryConfig.MaxKeys
// documents, whatever one take costs and however the logs have grown.
func TestTheLogOfAKeyTakesTheDocumentedBytes(t *testing.T) {
	now := int64(1_764_000_000_000_000)
	m := Must(NewMemory(MemoryConfig{MaxKeys: 1000, Clock: func() time.Time { return time.UnixMicro(now) }}))
	limit := Limit{Quota: MaxLogQuota, Window: time.Minute, Algorithm: SlidingLog}
	bound := Must(m.Bind("l", []StoreRule{{Name: "r", Limits: []Limit{limit, {Quota: MaxQuota, Window: 24 * time.Hour}}}}))
	take := func(key string, cost int64) {
		b := Batch{Items: []Item{{Key: []byte(key), Cost: cost, Results: make([]Result, 2)}}}
		if err := bound.Take(context.Background(), &b); err != nil || !b.Allowed {
			t.Fatal(b, err)
		}
	}
	held := func() int { return 8 * blockWords(m.shards[0].tables[0].blocks) }

	take("one take", MaxLogQuota)
	if got := held(); got > 128<<10 {
		t.Errorf("one take of %d hits takes %d bytes, documented are 128 KiB", MaxLogQuota, got)
	}
	// A key is left at every length while many grow past it.
	want := 128 << 10
	for length := int64(4); length < MaxLogQuota; length *= 2 {
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
		b := Batch{Items: []Item{{Key: fmt.Append(nil, "new", i), Cost: 1, Results: make([]Result, 2)}}}
		if err := bound.Take(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	if got, most := held(), 100*64+4096; got > most {
		t.Errorf("%d bytes are held for logs, nearly all of which are empty; at most %d expected", got, most)
	}
}

// A rule that is gone leaves no entry behind.
func TestRulesThatComeAndGoLeaveNothing(t *testing.T) {
	m := Must(NewMemory(MemoryConfig{MaxKeys: 10_000}))
	bound := Must(m.Bind("l", nil))
	for i := range 500 {
		bound = Must(bound.Rebind([]StoreRule{{Name: fmt.Sprint("r", i), Limits: []Limit{PerHour(3)}}, {Name: "stays", Limits: []Limit{PerHour(3)}}}))
		for key := range 50 {
			b := Batch{Items: []Item{{Rule: key % 2, Key: []byte{byte(i), byte(key)}, Cost: 1, Results: make([]Result, 1)}}}
			if err := bound.Take(context.Background(), &b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range m.shards {
		if n := len(m.shards[i].tables); n > 3 {
			t.Fatalf("shard %d has %d tables for two rules", i, n)
		}
	}
	if len(m.rules) != 2 {
		t.Errorf("%d rules", len(m.rules))
	}
}

// A Bound that is still in use after its rule has gone finds no key, and not
// those of the rule that has got the place.
func TestAnOldBoundSeesNothingOfOtherRules(t *testing.T) {
	m := Must(NewMemory(MemoryConfig{MaxKeys: 100}))
	old := Must(m.Bind("l", []StoreRule{{Name: "old", Limits: []Limit{PerHour(3)}}}))
	next := Must(old.Rebind(nil))
	next = Must(next.Rebind([]StoreRule{{Name: "new", Limits: []Limit{PerDay(5), PerHour(9)}}}))
	b := Batch{Items: []Item{{Key: []byte("k"), Cost: 4, Results: make([]Result, 2)}}}
	if err := next.Take(context.Background(), &b); err != nil || !b.Allowed {
		t.Fatal(b, err)
	}
	b = Batch{Items: []Item{{Key: []byte("k"), Cost: 1, Results: make([]Result, 1)}}}
	for range 5 {
		if err := old.Take(context.Background(), &b); err != nil || b.Items[0].Results[0].Remaining != 2 {
			t.Fatal(b, err)
		}
	}
	if err := old.Reset(context.Background(), &b); err != nil || m.Len() != 1 {
		t.Fatalf("Len %d, error %v", m.Len(), err)
	}
}

// An old Bound may be used between the Rebind that removes its rule and the one
// that gives the rule's id to another.
func TestARuleCountsAfterAnOldBoundWasUsed(t *testing.T) {
	m := Must(NewMemory(MemoryConfig{MaxKeys: 100}))
	old := Must(m.Bind("l", []StoreRule{{Name: "old", Limits: []Limit{PerHour(3)}}}))
	next := Must(old.Rebind(nil))
	b := Batch{Items: []Item{{Key: []byte("k"), Cost: 1, Results: make([]Result, 1)}}}
	if err := old.Take(t.Context(), &b); err != nil || m.Len() != 0 {
		t.Fatalf("a take of a rule that is gone: %d keys are held, want 0; error %v", m.Len(), err)
	}
	next = Must(next.Rebind([]StoreRule{{Name: "new", Limits: []Limit{PerHour(3)}}}))
	for i := range int64(4) {
		if err := next.Take(t.Context(), &b); err != nil || b.Allowed != (i < 3) {
			t.Errorf("take %d of 3 per hour: allowed %v, error %v", i+1, b.Allowed, err)
		}
	}
}
