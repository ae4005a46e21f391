package denycache

import (
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// remembered notes that a key is denied for an hour from time 0 on.
func remembered(table *table, key string) *core.Item {
	b := &core.Batch{Items: []core.Item{{Key: []byte(key), Cost: 1, Results: []core.Result{{RetryAfter: time.Hour}}}}}
	hour := time.Hour.Microseconds()
	table.remember(b, &b.Items[0], 0, hour, hour, table.generation(b.Items))
	return &b.Items[0]
}

func TestATableHoldsNoMoreThanItMay(t *testing.T) {
	const most = 640
	table := newTable(most)
	for i := range 10_000 {
		remembered(table, fmt.Sprint(i))
	}
	held := 0
	for i := range table.shards {
		held += len(table.shards[i].denied)
	}
	if held != most {
		t.Errorf("%d denied keys are held, want %d", held, most)
	}
}

// The room of a table is rounded up to whole shards: a table is never without.
func TestTheRoomOfATable(t *testing.T) {
	for maxKeys, want := range map[int]int{1: 1, 64: 1, 65: 2, 100: 2, 640: 10} {
		if got := newTable(maxKeys).most; got != want {
			t.Errorf("MaxKeys %d: %d keys in each of %d shards, want %d", maxKeys, got, shards, want)
		}
	}
}

func TestRoomIsMadeByWhatIsOver(t *testing.T) {
	for range 50 { // the order of a map is random
		var s shard
		s.denied = map[key][]denial{}
		for i := range uint64(7) {
			s.denied[key{i, i}] = []denial{{until: 100}, {until: 1}}
		}
		s.denied[key{9, 9}] = []denial{{until: 5}, {until: 4}}
		s.makeRoom(10)
		if _, found := s.denied[key{9, 9}]; found || len(s.denied) != 7 {
			t.Fatal("a key that is still denied made room for another, and one that is not did not")
		}
	}
}

func TestKeysOfDifferentRulesAreApart(t *testing.T) {
	table := newTable(64)
	it := remembered(table, "k")
	other := *it
	other.Rule = 1
	if table.recall(&other, 1) != unknown {
		t.Error("one rule's denial denies another rule's key")
	}
	if table.recall(it, 1) != denied {
		t.Error("the rule itself is not denied")
	}
}

func TestAKeyHasFewCosts(t *testing.T) {
	table := newTable(64)
	for cost := range int64(100) {
		b := &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: cost, Results: []core.Result{{RetryAfter: time.Hour}}}}}
		table.remember(b, &b.Items[0], 0, 1000-cost, 1000-cost, 0)
	}
	held := 0
	for i := range table.shards {
		for _, list := range table.shards[i].denied {
			held += len(list)
		}
	}
	if held != maxCosts {
		t.Errorf("%d denials of one key are held, want %d", held, maxCosts)
	}
}

// Of a denial that was a while ago, as much is left as the waits that are known
// say. What is missing stays missing until the store says otherwise.
func TestWhatIsLeftOfADenialLater(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct{ was, want core.Result }{
		{core.Result{RetryAfter: 10 * us, ResetAfter: 20 * us, MoreAfter: 7 * us}, core.Result{RetryAfter: 3 * us, ResetAfter: 13 * us, MoreAfter: us}},
		{core.Result{RetryAfter: 10 * us, ResetAfter: 20 * us, MoreAfter: 3 * us}, core.Result{RetryAfter: 3 * us, ResetAfter: 13 * us, MoreAfter: us}},
		{core.Result{RetryAfter: 10 * us, ResetAfter: 20 * us, MoreAfter: 9 * us}, core.Result{RetryAfter: 3 * us, ResetAfter: 13 * us, MoreAfter: 2 * us}},
		{core.Result{RetryAfter: 5 * us, ResetAfter: 6 * us, MoreAfter: 6 * us}, core.Result{Allowed: true, MoreAfter: us}},
		{core.Result{Allowed: true, Remaining: 4}, core.Result{Allowed: true, Remaining: 4}},
		{core.Result{RetryAfter: core.Never, ResetAfter: 8 * us}, core.Result{RetryAfter: core.Never, ResetAfter: us}},
	} {
		if got := later(c.was, 7*us); got != c.want {
			t.Errorf("%+v after 7 µs: %+v, want %+v", c.was, got, c.want)
		}
	}
}

// A full shard forgets the key that is denied for the shortest time, by the
// longest of its denials.
func TestRoomIsMadeByTheShortestWait(t *testing.T) {
	s := shard{denied: map[key][]denial{
		{1, 1}: {{until: 90}, {until: 20}},
		{2, 2}: {{until: 50}, {until: 40}},
		{3, 3}: {{until: 10}, {until: 80}},
	}}
	s.makeRoom(5)
	if _, found := s.denied[key{2, 2}]; found || len(s.denied) != 2 {
		t.Errorf("%v is left", s.denied)
	}
}

// A key that is denied for more costs than are remembered forgets the denial that
// is over first.
func TestAKeyForgetsTheShortestDenial(t *testing.T) {
	table := newTable(64)
	b := func(cost int64) *core.Batch {
		return &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: cost, Results: []core.Result{{RetryAfter: time.Hour}}}}}
	}
	for cost, until := range map[int64]int64{1: 700, 2: 600, 3: 800, 4: 900} {
		batch := b(cost)
		table.remember(batch, &batch.Items[0], 0, until, until, 0)
	}
	batch := b(5)
	table.remember(batch, &batch.Items[0], 0, 1000, 1000, 0)
	for cost, want := range map[int64]answer{1: denied, 2: unknown, 3: denied, 4: denied, 5: denied} {
		if got := table.recall(&b(cost).Items[0], 100); got != want {
			t.Errorf("cost %d: %v, want %v", cost, got, want)
		}
	}
}

// A denial is over at its end, and at a time before it was made.
func TestADenialIsOverAtItsEnd(t *testing.T) {
	for now, want := range map[int64]answer{99: unknown, 100: denied, 199: denied, 200: unknown} {
		table := newTable(64)
		b := &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Results: []core.Result{{RetryAfter: time.Hour}}}}}
		table.remember(b, &b.Items[0], 100, 200, 200, 0)
		if got := table.recall(&b.Items[0], now); got != want {
			t.Errorf("at %d: %v, want %v", now, got, want)
		}
	}
}

// A denial that is over goes; those of other costs stay until they are over too,
// and then the key goes.
func TestAKeyGoesWithItsLastDenial(t *testing.T) {
	table := newTable(64)
	item := func(cost int64) *core.Batch {
		return &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: cost, Results: []core.Result{{RetryAfter: time.Hour}}}}}
	}
	for cost, until := range map[int64]int64{1: 100, 2: 200} {
		b := item(cost)
		table.remember(b, &b.Items[0], 0, until, until, 0)
	}
	for _, step := range []struct {
		cost, now int64
		want      answer
		keys      int
	}{{1, 100, unknown, 1}, {2, 100, denied, 1}, {2, 200, unknown, 0}} {
		if got := table.recall(&item(step.cost).Items[0], step.now); got != step.want {
			t.Errorf("cost %d at %d: %v, want %v", step.cost, step.now, got, step.want)
		}
		keys := 0
		for i := range table.shards {
			keys += len(table.shards[i].denied)
		}
		if keys != step.keys {
			t.Errorf("after cost %d at %d the table has %d keys, want %d", step.cost, step.now, keys, step.keys)
		}
	}
}
