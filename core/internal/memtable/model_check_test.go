package memtable_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core/internal/memtable"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// ruleName is a rule of a limiter.
type ruleName struct{ limiter, rule string }

// states returns copies of the states that the store holds of a key.
func (s *storeModel) states(k modelKey) (states map[meter.Identity][]uint64, held bool) {
	name := k.ruleName()
	return s.tables.States(name.limiter, name.rule, k.key)
}

// learn finds out which keys are no longer in the tables. Those that had not expired were evicted;
// they are given to check. While the clock is behind, it also copies the states: what a state from
// the future becomes depends on when the store looks at it first.
func (s *storeModel) learn(check func(gone []modelKey)) {
	s.tb.Helper()
	var gone []modelKey
	for k, state := range s.keys {
		name := k.ruleName()
		held := s.tables.Held(name.limiter, name.rule, k.key)
		switch {
		case held && s.now < s.latest:
			state.exhausted = true
			state.words, _ = s.states(k)
		case !held && check == nil && s.expiredBy(k, s.latest), !held && s.expired(k):
			delete(s.keys, k)
		case !held:
			gone = append(gone, k)
		}
	}
	if check != nil {
		check(gone)
	}
	for _, k := range gone {
		delete(s.keys, k)
	}
	if n := s.m.Len(); n != len(s.keys) || n > s.tables.MaxKeys() {
		s.tb.Fatalf("Len %d, the model has %d keys, MaxKeys is %d", n, len(s.keys), int64(s.tables.MaxKeys()))
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
	evicted := s.m.Evicted()
	if n := evicted - s.evicted; n != uint64(len(kept)) {
		s.tb.Fatalf("%d keys were evicted, %d counted: %v", len(kept), n, kept)
	}
	s.evicted = evicted
	if len(gone) > len(kept) && s.tables.MaxKeys() >= len(items) {
		s.tb.Fatalf("MaxKeys %d: keys that a take of %d keys has charged are not held: %v", int64(s.tables.MaxKeys()), len(items), gone)
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
	if len(items) != 1 || len(kept) == 0 || s.tables.Shards() > 1 {
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
	share := int64(s.tables.MaxKeys()) / rules
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
		var r meter.Result
		m.Decide(&r, w, s.now, 1)
		m.Report(&r, w, s.now, 1)
		weight = max(weight, (m.Capacity-r.Remaining)<<20/m.Capacity)
		wait = max(wait, r.RetryAfter.Microseconds())
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
	name := gone.ruleName()
	if s.held()[name] > int64(s.tables.Sample(name.limiter, name.rule)) {
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
		for _, c := range []struct{ maxKeys, steps int }{{1, 1500}, {2, 1500}, {3, 1500}, {7, 2000}, {20, 3000}, {100, 3000}, {1000, 500}, {2500, 80}} {
			if !t.Run(fmt.Sprintf("seed=%d/keys=%d", seed, c.maxKeys), func(t *testing.T) {
				s := newStoreModel(t, seed, c.maxKeys)
				for i := range c.steps {
					s.step()
					if i%20 == 0 {
						s.tables.Check(t)
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
	words, _ := s.tables.Words()
	if most := s.tables.Shards() * 8 * 2 * memtable.MinHomes * 12; words > most {
		s.tb.Fatalf("%d words are held without a key, at most %d expected", words, most)
	}
}
