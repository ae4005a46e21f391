package resilient

import (
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// A ledger keeps a bounded number of keys, the ones with the most hits. It
// forgets keys whose hits no longer count before it is full.
func TestALedgerIsBounded(t *testing.T) {
	l := newLedger(1000)
	key := func(i int) owedKey { return owedKey{rule: "user", key: fmt.Sprint(i)} }
	now := int64(1)
	l.add(owedKey{rule: "user", key: "alice"}, debt{sure: 5, until: now + 1_000_000}, "", true, now)
	for i := range 10_000 {
		l.add(key(i), debt{sure: 1, until: now + 1_000_000}, fmt.Sprint(i%3), true, now)
		due := 0
		for _, keys := range l.due {
			due += len(keys)
		}
		if len(l.debts) > 1000 || due != len(l.debts) {
			t.Fatalf("%d keys, %d of them due, of 1000", len(l.debts), due)
		}
	}
	if l.debts[owedKey{rule: "user", key: "alice"}].sure != 5 {
		t.Error("a key with five hits was forgotten for keys with one")
	}
	// Hits that last a moment: each key that is added finds others that are over.
	l, most := newLedger(100_000), 0
	for i := range 50_000 {
		l.add(key(i), debt{sure: 1, until: now + 100}, "", true, now)
		most = max(most, len(l.debts))
		now++
	}
	if most > 1000 {
		t.Errorf("up to %d keys of which the hits of 100 count at a time", most)
	}
}

// What is kept of a key is bounded, however long the key is.
func TestALongKeyIsKeptAsAHash(t *testing.T) {
	o := &owed{names: []string{"user"}}
	for n, want := range map[int]int{maxOwedKey: maxOwedKey, maxOwedKey + 1: 32, 1 << 20: 32} {
		a, b := o.key(&core.Item{Key: []byte(strings.Repeat("a", n))}), o.key(&core.Item{Key: []byte(strings.Repeat("a", n-1) + "b")})
		if len(a.key) != want || a.hashed != (n > maxOwedKey) || a == b {
			t.Errorf("a key of %d bytes is kept in %d, hashed: %t", n, len(a.key), a.hashed)
		}
	}
}

// A full ledger takes no key that owes no hits in place of one that does. Of those
// that owe none, the new one replaces another.
func TestAKeyWithoutHitsTakesNoPlaceOfOneThatOwesSome(t *testing.T) {
	l := newLedger(8)
	key := func(i int) owedKey { return owedKey{rule: "user", key: fmt.Sprint(i)} }
	now := int64(1)
	for i := range 7 {
		l.add(key(i), debt{sure: 1, until: now + 1_000_000}, "", true, now)
	}
	if !l.add(key(7), debt{until: now + 1_000_000}, "", true, now) || !l.add(key(8), debt{until: now + 1_000_000}, "", true, now) {
		t.Error("a key without hits is not noted, although there was a place that no hits need")
	}
	if !l.add(key(9), debt{sure: 1, until: now + 1_000_000}, "", true, now) {
		t.Error("a key that owes a hit is not noted")
	}
	if l.add(key(10), debt{until: now + 1_000_000}, "", true, now) || len(l.debts) != 8 {
		t.Errorf("a key without hits is noted in a ledger full of others: %d keys", len(l.debts))
	}
	for _, i := range []int{0, 1, 2, 3, 4, 5, 6, 9} {
		if l.debts[key(i)].sure != 1 {
			t.Errorf("key %d, which owes a hit, was forgotten", i)
		}
	}
}
