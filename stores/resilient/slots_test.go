package resilient

import (
	"fmt"
	"testing"
)

// Leases that nobody has released are forgotten when they have ended: those of four keys
// whenever a key gets its first lease.
func TestEndedLeasesAreForgotten(t *testing.T) {
	s := newSlots()
	put := func(key string, now int64) {
		s.put(owedKey{rule: "r", key: key}, 1, slot{cost: 1, ends: now + 10}, now)
	}
	for i := range 40 {
		put(fmt.Sprint("old", i), 0)
	}
	put("old7", 0)
	if n := len(s.keys); n != 40 {
		t.Fatalf("%d keys while none of the leases has ended, want 40", n)
	}
	put("new", 10)
	if n := len(s.keys); n != 40-4+1 {
		t.Errorf("%d keys after a lease of another key, want 37", n)
	}
	put("new", 10)
	if n := len(s.keys); n != 40-4+1 {
		t.Errorf("%d keys after another lease of that key, want 37", n)
	}
}
