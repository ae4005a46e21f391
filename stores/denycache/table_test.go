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
