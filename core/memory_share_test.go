package core_test

import (
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

func sharedStore(t *testing.T, maxKeys int, quotas ...int64) (*core.Memory, *core.Limiter) {
	t.Helper()
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: newClock().Now}))
	var rules []core.Rule
	for i, quota := range quotas {
		rules = append(rules, core.Rule{Name: fmt.Sprint("r", i), Limits: []core.Limit{core.PerHour(quota)}})
	}
	return m, newLimiter(t, core.Config{Store: m, Rules: rules}, nil)
}

func hitTimes(t *testing.T, l *core.Limiter, rule, key string, n int) {
	t.Helper()
	for range n {
		takeOf(t, l, rule, key)
	}
}

// A rule that holds fewer keys than its share loses none to a flood of keys on
// another rule, be the keys of the flood denied or not.
func TestAFloodTakesNoRoomFromRulesBelowTheirShare(t *testing.T) {
	for _, maxKeys := range []int{1000, 20_000} {
		for _, quota := range []int64{1, 3} {
			m, l := sharedStore(t, maxKeys, 2, quota)
			n := maxKeys/2 - 10
			for i := range n {
				hitTimes(t, l, "r0", fmt.Sprint(i), 1+i%2)
			}
			for i := range 4 * maxKeys {
				takeOf(t, l, "r1", fmt.Sprint("flood", i))
			}
			if m.Len() != maxKeys {
				t.Errorf("%d keys are held, want %d", m.Len(), maxKeys)
			}
			for i := range n {
				if got, want := left(t, l, "r0", fmt.Sprint(i)), int64(1-i%2); got != want {
					t.Fatalf("MaxKeys %d, a flood on a limit of %d: key %d of the other rule has %d hits left, want %d", maxKeys, quota, i, got, want)
				}
			}
		}
	}
}

// A rule that holds more than its share gives room to one that does not.
func TestARuleGetsItsShareBack(t *testing.T) {
	m, l := sharedStore(t, 1000, 5, 1)
	for i := range 3000 {
		takeOf(t, l, "r1", fmt.Sprint("flood", i))
	}
	for i := range 500 {
		takeOf(t, l, "r0", fmt.Sprint(i))
	}
	for i := range 500 {
		if got := left(t, l, "r0", fmt.Sprint(i)); got != 4 {
			t.Fatalf("key %d has %d hits left, want 4", i, got)
		}
	}
	if m.Len() != 1000 {
		t.Errorf("%d keys are held", m.Len())
	}
}

// Within a rule no denied key is evicted while there is a key that is not
// denied, however few of those there are.
func TestWithinARuleDeniedKeysGoLast(t *testing.T) {
	_, l := sharedStore(t, 1000, 2)
	for i := range 999 {
		hitTimes(t, l, "r0", fmt.Sprint(i), 3)
	}
	for i := range 20_000 {
		takeOf(t, l, "r0", fmt.Sprint("flood", i))
	}
	for i := range 999 {
		if takeOf(t, l, "r0", fmt.Sprint(i)) {
			t.Fatalf("key %d is not denied any more", i)
		}
	}
}

// Somebody who is denied under one username fills the store with made-up ones.
// He needs as many denied usernames as the rule's share of MaxKeys to get rid
// of his own counter.
func TestWhatReleasesADeniedUsername(t *testing.T) {
	const maxKeys, quota = 900, 5
	_, l := sharedStore(t, maxKeys, 100_000_000, quota, quota) // address; address and account; account
	fail := func(user string, times int) {
		for range times {
			_, err := l.Take(t.Context(), 1,
				core.Hit{Rule: "r0", Key: "192.0.2.1"}, core.Hit{Rule: "r1", Key: "192.0.2.1 " + user}, core.Hit{Rule: "r2", Key: user})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	denied := func() bool {
		return left(t, l, "r1", "192.0.2.1 victim") == 0 && left(t, l, "r2", "victim") == 0
	}
	fail("victim", quota)
	for i := range 20 * maxKeys {
		fail(fmt.Sprint("once", i), 1)
	}
	if !denied() {
		t.Fatal("a flood of usernames with one failure each has released a denied username")
	}
	for i := range maxKeys/3 - 1 {
		fail(fmt.Sprint("denied", i), quota)
	}
	if !denied() {
		t.Fatal("fewer denied usernames than the rule's share have released another one")
	}
	// Each new denied username evicts one of the few that it examines. Which ones
	// these are depends on the random hash, so the first one may survive several
	// rounds; that it survives all of these is less likely than 10⁻²⁰.
	for i := 0; denied(); i++ {
		if i == 20*maxKeys {
			t.Fatal("the documented number is too low: a store full of denied usernames still holds the first one")
		}
		fail(fmt.Sprint("more", i), quota)
	}
}

// A take does not evict a key that it has itself charged; if MaxKeys is lower
// than the number of its keys, those beyond it are not held.
func TestATakeKeepsItsOwnKeys(t *testing.T) {
	for maxKeys := 1; maxKeys <= 4; maxKeys++ {
		m, l := sharedStore(t, maxKeys, 5, 5, 5)
		for i := range 300 {
			key := fmt.Sprint(i)
			d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r0", Key: key}, core.Hit{Rule: "r1", Key: key}, core.Hit{Rule: "r2", Key: key})
			if err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			held := 0
			for _, rule := range []string{"r0", "r1", "r2"} {
				if left(t, l, rule, key) == 4 {
					held++
				}
			}
			if want := min(3, maxKeys); held != want || m.Len() > maxKeys {
				t.Fatalf("MaxKeys %d, take %d: %d of its 3 keys are held, want %d; Len %d", maxKeys, i, held, want, m.Len())
			}
		}
	}
}
