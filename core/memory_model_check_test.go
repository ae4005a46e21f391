package core

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// table returns the table of a key and its slot, nil if the key is not there.
func (s *storeModel) slot(k modelKey) (*memoryTable, []uint64) {
	h := s.m.hash.sum([]byte(k.key))
	rule := s.m.rules[ruleName{[]string{"a", "b"}[k.limiter], k.rule}]
	t := s.m.shards[h.b&s.m.mask].table(rule.id)
	if t == nil {
		return nil, nil
	}
	if i, found := t.find(h); found {
		return t, t.slot(i)
	}
	return t, nil
}

// learn finds out which keys are no longer in the tables. Those that had not
// expired were evicted; they are given to check. While the clock is behind, it
// also copies the states: what a state from the future becomes depends on when
// the store looks at it first.
func (s *storeModel) learn(check func(gone []modelKey)) {
	s.tb.Helper()
	var gone []modelKey
	for k, state := range s.keys {
		t, slot := s.slot(k)
		switch {
		case slot != nil && s.now < s.latest:
			state.exhausted = true
			clear(state.words)
			for i, id := range t.layout.ids {
				state.words[id] = slices.Clone(t.state(slot, i))
			}
		case slot == nil && check == nil && s.expiredBy(k, s.latest), slot == nil && s.expired(k):
			delete(s.keys, k)
		case slot == nil:
			gone = append(gone, k)
		}
	}
	if check != nil {
		check(gone)
	}
	for _, k := range gone {
		delete(s.keys, k)
	}
	if n := s.m.Len(); n != len(s.keys) || n > int(s.m.maxKeys) {
		s.tb.Fatalf("Len %d, the model has %d keys, MaxKeys is %d", n, len(s.keys), s.m.maxKeys)
	}
}

func (s *storeModel) expiredBy(k modelKey, now int64) bool {
	defer func(now int64) { s.now = now }(s.now)
	s.now = now
	return s.expired(k)
}

// held returns how many keys each rule holds.
func (s *storeModel) held() map[ruleName]int64 {
	held := map[ruleName]int64{}
	for k := range s.keys {
		held[k.ruleName()]++
	}
	return held
}

func (k modelKey) ruleName() ruleName {
	return ruleName{[]string{"a", "b"}[k.limiter], k.rule}
}

// checkEvicted checks the keys that a take has evicted against what the store
// promises about capacity.
func (s *storeModel) checkEvicted(items, gone, charged, inserted []modelKey) {
	s.tb.Helper()
	kept := slices.DeleteFunc(slices.Clone(gone), func(k modelKey) bool { return slices.Contains(charged, k) })
	evicted := s.m.Stats().Evicted
	if n := evicted - s.evicted; n != uint64(len(kept)) {
		s.tb.Fatalf("%d keys were evicted, %d counted: %v", len(kept), n, kept)
	}
	s.evicted = evicted
	if len(gone) > len(kept) && int(s.m.maxKeys) >= len(items) {
		s.tb.Fatalf("MaxKeys %d: keys that a take of %d keys has charged are not held: %v", s.m.maxKeys, len(items), gone)
	}
	for _, k := range kept {
		if s.denied(k) {
			for o, state := range s.keys {
				if o.ruleName() == k.ruleName() && !slices.Contains(gone, o) && !slices.Contains(items, o) && !state.exhausted && !s.denied(o) && !s.expired(o) {
					s.tb.Fatalf("the denied key %v was evicted although %v is not denied", k, o)
				}
			}
		}
	}
	if len(items) != 1 || len(kept) == 0 || len(s.m.shards) > 1 {
		return
	}
	s.checkBest(kept[0], items[0])
	own, rule, before := inserted[0].ruleName(), kept[0].ruleName(), s.held()
	if before[own]--; before[own] == 0 {
		delete(before, own)
	}
	rules := int64(len(before))
	if before[own] == 0 {
		rules++
	}
	share := s.m.maxKeys / rules
	switch {
	case before[own] >= share && before[own] > 0 && rule != own:
		s.tb.Fatalf("rule %v holds %d keys, its share is %d, and it took a key of %v", own, before[own], share, rule)
	case before[own] < share && before[rule] <= share:
		s.tb.Fatalf("rule %v lost a key to %v: it holds %d keys, its share is %d", rule, own, before[rule], share)
	}
}

// weight returns the largest share that a key has used of a limit, in 1/2^20, and
// of a denied key how long it takes until all of its limits have a hit left.
func (s *storeModel) weight(k modelKey) (denied bool, weight int64) {
	var wait int64
	for _, l := range s.limits(k) {
		m, w := s.state(k, l, 0)
		used := m.capacity - min(m.remaining(w, s.now), m.capacity)
		weight = max(weight, used<<20/m.capacity)
		wait = max(wait, m.wait(w, s.now, 1))
	}
	if denied = s.denied(k); denied {
		weight = wait
	}
	return denied, weight
}

// checkBest checks that a key that was evicted for another one was the best of
// its rule, if the rule has so few keys that all of them were examined.
func (s *storeModel) checkBest(gone, inserted modelKey) {
	s.tb.Helper()
	t := s.m.shards[0].table(s.m.rules[gone.ruleName()].id)
	if s.held()[gone.ruleName()] > int64(t.layout.sample) {
		return
	}
	denied, weight := s.weight(gone)
	for o, state := range s.keys {
		if o == gone || o == inserted || o.ruleName() != gone.ruleName() || s.expired(o) {
			continue
		}
		if d, w := s.weight(o); d == denied && w < weight && (denied || !state.exhausted) {
			s.tb.Fatalf("key %v was evicted, whose weight is %d, and that of %v is %d (denied: %v)", gone, weight, o, w, denied)
		}
	}
}

// checkTables checks the structure of every table.
func (s *storeModel) checkTables() {
	s.tb.Helper()
	used := 0
	for i := range s.m.shards {
		for _, t := range s.m.shards[i].tables {
			if t != nil {
				t.checkOrder(s.tb)
				used += t.used
			}
		}
	}
	if used != s.m.Len() {
		s.tb.Fatalf("%d slots are used, Len is %d", used, s.m.Len())
	}
}

var (
	modelSeed = flag.Uint64("model.seed", 0, "seed of TestTheStoreIsAMap, 0: a random one")
	modelSoak = flag.Duration("model.soak", 0, "how long TestTheStoreIsAMap goes on with other seeds")
)

// The store does as a map does. What it evicts, it evicts as it promises.
//
// The test takes a few seconds. To soak the store, run it with
// -model.soak=10m; to repeat a failure, with -model.seed=N.
func TestTheStoreIsAMap(t *testing.T) {
	seed, start := *modelSeed, time.Now()
	if seed == 0 {
		seed = rand.Uint64()
	}
	for ; ; seed++ {
		for _, c := range []struct{ maxKeys, steps int }{{1, 1500}, {2, 1500}, {3, 1500}, {7, 2000}, {20, 3000}, {100, 3000}, {1000, 500}, {5000, 40}} {
			if !t.Run(fmt.Sprintf("seed=%d/keys=%d", seed, c.maxKeys), func(t *testing.T) {
				s := newStoreModel(t, seed, c.maxKeys)
				for i := range c.steps {
					s.step()
					if i%20 == 0 {
						s.checkTables()
					}
				}
				s.returnsMemory()
			}) {
				return
			}
		}
		if time.Since(start) >= *modelSoak {
			return
		}
	}
}

// returnsMemory resets everything and looks what is left.
func (s *storeModel) returnsMemory() {
	s.tb.Helper()
	s.learn(nil)
	for limiter := range s.bounds {
		s.resetAll(limiter)
	}
	if s.m.Len() != 0 {
		s.tb.Fatalf("%d keys after all were reset", s.m.Len())
	}
	words := 0
	for i := range s.m.shards {
		for _, t := range s.m.shards[i].tables {
			if t != nil {
				words += len(t.words) + blockWords(t.blocks)
			}
		}
	}
	if most := len(s.m.shards) * 8 * 2 * minHomes * 12; words > most {
		s.tb.Fatalf("%d words are held without a key, at most %d expected", words, most)
	}
}
