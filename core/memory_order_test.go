package core_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

var orderSeed = flag.Uint64("order.seed", 0, "seed of TestTheOrderOfEviction, 0: a random one")

// What is evicted is what the documentation of Memory says: first the rule, then
// expired keys, then the key with the smallest share of its limit used, and of
// denied keys, if all of the rule's are, the one that recovers soonest.
func TestTheOrderOfEviction(t *testing.T) {
	seed := *orderSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d: repeat with -order.seed", seed)
	evicted := uint64(0)
	for i := range uint64(60) {
		for _, maxKeys := range []int{1, 2, 3, 5, 8} {
			e := newEvictions(t, seed+i, maxKeys, 1+int(i%3))
			for range 150 {
				e.step()
			}
			evicted += e.m.Evicted()
		}
	}
	if evicted < 1000 {
		t.Errorf("only %d keys were evicted", evicted)
	}
}

func TestWhatIsEvicted(t *testing.T) {
	type use struct {
		rule, key string
		hits      int
		then      time.Duration // passes after the hits
	}
	for name, c := range map[string]struct {
		uses []use // of a store of three keys; the last one inserts the fourth
		gone string
	}{
		"the key that has used least": {[]use{{"a", "two", 2, 0}, {"a", "one", 1, 0}, {"a", "three", 3, 0}, {"a", "new", 1, 0}}, "one"},
		// Of 4 hits an hour, and of 100 a second.
		"the key that has used the smallest share":      {[]use{{"a", "one of four", 1, 0}, {"b", "x", 1, 0}, {"a", "two of four", 2, 0}, {"a", "new", 1, 0}}, "one of four"},
		"a key that is not denied":                      {[]use{{"b", "not denied", 99, 0}, {"b", "denied for less than a second", 100, 0}, {"b", "denied too", 100, 0}, {"b", "new", 1, 0}}, "not denied"},
		"the denied key that recovers first":            {[]use{{"a", "second", 4, time.Minute}, {"a", "third", 4, -2 * time.Minute}, {"a", "first", 4, 2 * time.Minute}, {"a", "new", 1, 0}}, "first"},
		"the expired key":                               {[]use{{"a", "expired", 3, time.Hour}, {"a", "one", 1, 0}, {"a", "two", 2, 0}, {"a", "new", 1, 0}}, "expired"},
		"a key of the same rule, which holds its share": {[]use{{"a", "x", 3, 0}, {"a", "y", 2, 0}, {"b", "one of a hundred", 1, 0}, {"b", "new", 1, 0}}, "one of a hundred"},
	} {
		t.Run(name, func(t *testing.T) {
			clk := newClock()
			m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 3, Clock: clk.Now}))
			fixed := func(quota int64, window time.Duration) []core.Limit {
				return []core.Limit{{Quota: quota, Window: window, Algorithm: core.FixedWindow}}
			}
			l := newLimiter(t, core.Config{Store: m, Rules: []core.Rule{
				{Name: "a", Limits: fixed(4, time.Hour)}, {Name: "b", Limits: fixed(100, time.Second)},
			}}, nil)
			quota := map[string]int64{"a": 4, "b": 100}
			for _, u := range c.uses {
				hitTimes(t, l, u.rule, u.key, u.hits)
				clk.advance(u.then)
			}
			for _, u := range c.uses {
				want := quota[u.rule] - int64(u.hits)
				if u.key == c.gone {
					want = quota[u.rule]
				}
				if got := left(t, l, u.rule, u.key); got != want {
					t.Errorf("key %q: %d hits left, want %d", u.key, got, want)
				}
			}
			if (m.Evicted() == 0) != (c.gone == "expired") || m.Len() != 3 {
				t.Errorf("%d keys, %d evicted", m.Len(), m.Evicted())
			}
		})
	}
}

// Keys that are reset, and keys of a rule that is removed, leave their room to
// others: a store that is nearly empty evicts nothing.
func TestRoomThatIsGivenBackIsUsedAgain(t *testing.T) {
	const maxKeys = 3000 // more than one shard
	limits := []core.Limit{core.PerHour(5)}
	rule := func(name string) core.Rule { return core.Rule{Name: name, Limits: limits} }
	for name, give := range map[string]func(t *testing.T, l *core.Limiter){
		"Reset": func(t *testing.T, l *core.Limiter) {
			for i := range maxKeys {
				reset(t, l, core.Hit{Rule: "a", Key: fmt.Sprint(i)})
			}
		},
		"Reconfigure": func(t *testing.T, l *core.Limiter) {
			if err := l.Reconfigure(core.Config{Rules: []core.Rule{rule("b")}}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: newClock().Now}))
			l := newLimiter(t, core.Config{Store: m, Rules: []core.Rule{rule("a"), rule("b")}}, nil)
			for i := range maxKeys {
				takeOf(t, l, "a", fmt.Sprint(i))
			}
			give(t, l)
			if n := m.Len(); n != 0 {
				t.Errorf("%d keys are held after all were given up", n)
			}
			for i := range maxKeys {
				takeOf(t, l, "b", fmt.Sprint(i))
			}
			if m.Evicted() != 0 || m.Len() != maxKeys {
				t.Errorf("%d keys, %d evicted, want %d keys and no eviction", m.Len(), m.Evicted(), maxKeys)
			}
		})
	}
}
