package denycache

import (
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func refused(key string, wait time.Duration) *core.Item {
	return &core.Item{Key: []byte(key), Cost: 1, Results: []core.Result{{RetryAfter: wait}}}
}

func TestATableHoldsNoMoreThanItMay(t *testing.T) {
	const most = 640
	table := newTable(most)
	for i := range 10_000 {
		it := refused(fmt.Sprint(i), time.Hour)
		table.remember(table.key(it), it, 0, time.Hour.Microseconds(), 0)
	}
	held := 0
	for i := range table.shards {
		held += len(table.shards[i].refused)
	}
	if held != most {
		t.Errorf("%d refusals are held, want %d", held, most)
	}
}

func TestRoomIsMadeByWhatIsOver(t *testing.T) {
	for range 50 { // the order of a map is random
		var s shard
		s.refused = map[key]refusal{}
		for i := range uint64(7) {
			s.refused[key{i, i}] = refusal{until: 100}
		}
		s.refused[key{9, 9}] = refusal{until: 5}
		s.makeRoom(10)
		if _, found := s.refused[key{9, 9}]; found || len(s.refused) != 7 {
			t.Fatal("a refusal that still holds made room for another, and one that is over did not")
		}
	}
}

func TestKeysOfDifferentRulesAreApart(t *testing.T) {
	table := newTable(64)
	it := refused("k", time.Hour)
	table.remember(table.key(it), it, 0, time.Hour.Microseconds(), 0)
	other := refused("k", 0)
	other.Rule = 1
	if table.recall(table.key(other), other, 1) {
		t.Error("a rule is refused what another one was")
	}
	if !table.recall(table.key(it), it, 1) {
		t.Error("the rule itself is not")
	}
}
