package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

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
			l := newLimiter(t, core.Config{Store: m, Rules: []core.Rule{
				{Name: "a", Limits: []core.Limit{fixed(4, time.Hour)}}, {Name: "b", Limits: []core.Limit{fixed(100, time.Second)}},
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

// A key that got hits back is not denied any more: it makes room before all denied ones do.
func TestAKeyThatGotHitsBackMakesRoomFirst(t *testing.T) {
	for name, giveBack := range map[string]func(l *core.Limiter, d core.Decision) error{
		"Grant":  func(l *core.Limiter, d core.Decision) error { _, err := l.Grant(t.Context(), 1, d.Hit()); return err },
		"Adjust": func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, 2) },
	} {
		m, l := sharedStore(t, 1000, 3)
		for i := range 1000 {
			d, err := l.Take(t.Context(), 3, core.Hit{Rule: "r0", Key: fmt.Sprint(i)})
			if i == 999 {
				err = giveBack(l, d)
			}
			if err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		}
		takeOf(t, l, "r0", "new")
		if got := left(t, l, "r0", "999"); got != 3 || m.Evicted() != 1 {
			t.Errorf("%s: the key has %d left, and %d were evicted", name, got, m.Evicted())
		}
	}
}

// Somebody who is denied under one username fills the store with made-up ones. He needs as many
// denied usernames as the rule's share of MaxKeys to get rid of his own counter.
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

// What is evicted is what the documentation of Memory says: first the rule, then
// expired keys, then the key with the smallest share of its limit used, and of
// denied keys, if all of the rule's are, the one that recovers soonest.
func TestTheOrderOfEviction(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
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

// evictions is a Memory so small that every key of a rule is examined when one
// is evicted, so that what Memory promises about the order leaves no choice.
// Beside it is the list of the keys that it must hold.
type evictions struct {
	t       *testing.T
	r       *rand.Rand
	c       *clock
	m       *core.Memory
	l       *core.Limiter
	maxKeys int
	rules   []core.Rule // those that the limiter has now
	all     []core.Rule
	keys    []*usedKey
	expired []*usedKey // may be held still
	log     []string
}

func newEvictions(t *testing.T, seed uint64, maxKeys, rules int) *evictions {
	c := newClock()
	e := &evictions{t: t, r: rand.New(rand.NewPCG(seed, uint64(maxKeys))), c: c, maxKeys: maxKeys}
	e.m = core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: c.Now}))
	for i := range rules {
		limit := core.Limit{Quota: 1 + int64(e.r.IntN(4)), Window: time.Duration(5+e.r.IntN(20)) * time.Second, Algorithm: core.FixedWindow}
		e.all = append(e.all, core.Rule{Name: fmt.Sprint("r", i), Limits: []core.Limit{limit}})
	}
	e.rules = slices.Clone(e.all)
	e.l = newLimiter(t, core.Config{Store: e.m, Rules: e.rules}, nil)
	return e
}

type usedKey struct {
	rule, key string
	limit     core.Limit
	start     time.Time
	used      int64
	late      bool // has been denied, and the store may not have noticed that it has recovered
}

func (k *usedKey) denied() bool { return k.used == k.limit.Quota }

func (e *evictions) step() {
	e.t.Helper()
	rule := e.rules[e.r.IntN(len(e.rules))]
	key := fmt.Sprint(e.r.IntN(3 * e.maxKeys))
	switch n := e.r.IntN(100); {
	case n < 70:
		e.take(rule, key)
	case n < 85:
		e.c.advance(time.Duration(e.r.IntN(2000)) * time.Millisecond)
	case n < 90:
		e.reset(rule, key)
	case n < 92:
		e.reconfigure()
	case n < 95:
		e.grant(rule, key)
	default:
		for range 4 { // until a rule is denied its keys
			e.take(rule, key)
		}
	}
}

func (e *evictions) fail(format string, args ...any) {
	e.t.Helper()
	for _, line := range e.log[max(0, len(e.log)-40):] {
		e.t.Log(line)
	}
	for _, k := range e.keys {
		e.t.Logf("held: rule %s key %s, %d of %d used, since %v", k.rule, k.key, k.used, k.limit.Quota, e.c.Now().Sub(k.start))
	}
	e.t.Fatalf(format, args...)
}

func (e *evictions) note(format string, args ...any) {
	e.log = append(e.log, fmt.Sprintf(format, args...))
}

// expire moves the keys whose window has ended to the expired ones.
func (e *evictions) expire() {
	e.keys = slices.DeleteFunc(e.keys, func(k *usedKey) bool {
		over := e.c.Now().Sub(k.start) >= k.limit.Window
		if over {
			e.expired = append(e.expired, k)
		}
		return over
	})
}

func (e *evictions) find(rule, key string) *usedKey {
	if i := slices.IndexFunc(e.keys, func(k *usedKey) bool { return k.rule == rule && k.key == key }); i >= 0 {
		return e.keys[i]
	}
	return nil
}

func (e *evictions) take(rule core.Rule, key string) {
	e.t.Helper()
	e.expire()
	k, held, evicted := e.find(rule.Name, key), e.m.Len(), e.m.Evicted()
	if held == len(e.keys) {
		e.expired = nil
	}
	d, err := e.l.Take(e.t.Context(), 1, core.Hit{Rule: rule.Name, Key: key})
	if err != nil {
		e.t.Fatal(err)
	}
	e.note("take %s %s: %v, %d held before", rule.Name, key, d.Allowed, held)
	if want := k == nil || k.used < k.limit.Quota; d.Allowed != want {
		e.fail("rule %s, key %s: allowed %v, want %v", rule.Name, key, d.Allowed, want)
	}
	if k == nil {
		e.checkEvicted(rule.Name, held, int(e.m.Evicted()-evicted))
		k = &usedKey{rule: rule.Name, key: key, limit: rule.Limits[0], start: e.c.Now()}
		e.expired = slices.DeleteFunc(e.expired, func(o *usedKey) bool {
			again := o.rule == k.rule && o.key == k.key
			k.late = k.late || again && o.late
			return again
		})
		e.keys = append(e.keys, k)
	} else if e.m.Evicted() != evicted || e.m.Len() != held {
		e.fail("a take of a key that is held has changed which keys are held")
	}
	if d.Allowed {
		k.used++
		if e.r.IntN(8) == 0 {
			e.note("refund")
			if err := e.l.Adjust(e.t.Context(), d, 0); err != nil {
				e.t.Fatal(err)
			}
			k.late = false
			if k.used--; k.used == 0 { // counts for nothing, and is held until its window ends
				e.keys = slices.DeleteFunc(e.keys, func(o *usedKey) bool { return o == k })
				e.reset(rule, key)
			}
		}
	}
	k.late = k.late || k.used == k.limit.Quota
	e.checkHeld()
}

// checkEvicted finds which of the keys are no longer held, now that one of rule
// own has been inserted, and checks that these were the ones to go.
func (e *evictions) checkEvicted(own string, held, evicted int) {
	e.t.Helper()
	var gone []*usedKey
	for _, k := range e.keys {
		if left(e.t, e.l, k.rule, k.key) == k.limit.Quota {
			gone = append(gone, k)
		}
	}
	if len(gone) != evicted || evicted > 1 {
		e.fail("%d keys were evicted, %d counted", len(gone), evicted)
	}
	if evicted == 0 {
		return
	}
	v := gone[0]
	e.note("evicted %s %s", v.rule, v.key)
	switch {
	case held < e.maxKeys:
		e.fail("evicted a key from a store of %d keys that held %d", e.maxKeys, held)
	case held > len(e.keys) && len(e.all) == 1 && !slices.ContainsFunc(e.expired, func(k *usedKey) bool { return k.late }):
		e.fail("evicted a key that has not expired, and one of %d expired keys is held", len(e.expired))
	case held == len(e.keys):
		e.checkRule(own, v.rule)
	}
	for _, k := range e.keys {
		if k == v || k.rule != v.rule {
			continue
		}
		vDenied, denied := v.denied(), k.denied()
		switch {
		case k.late && !denied:
		case vDenied && !denied:
			e.fail("evicted the denied key %s, and %s of the same rule is not denied", v.key, k.key)
		case vDenied && k.start.Before(v.start):
			e.fail("evicted the denied key %s, and %s recovers sooner", v.key, k.key)
		case !vDenied && !denied && k.used < v.used:
			e.fail("evicted key %s, which has used %d of its quota, and %s has used %d", v.key, v.used, k.key, k.used)
		}
	}
	e.keys = slices.DeleteFunc(e.keys, func(k *usedKey) bool { return k == v })
}

// checkRule checks which rule had to give up a key. No expired key is held.
func (e *evictions) checkRule(own, victim string) {
	e.t.Helper()
	held, open, perhaps := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, k := range e.keys {
		held[k.rule]++
		open[k.rule] = open[k.rule] || !k.denied() && !k.late
		perhaps[k.rule] = perhaps[k.rule] || !k.denied()
	}
	rules := len(held)
	if held[own] == 0 {
		rules++
	}
	share := e.maxKeys / rules
	if held[own] >= share && held[own] > 0 {
		if victim != own {
			e.fail("rule %s holds %d keys, its share is %d, and it took a key of %s", own, held[own], share, victim)
		}
		return
	}
	if held[victim] <= share {
		e.fail("rule %s lost a key to %s: it holds %d, its share is %d", victim, own, held[victim], share)
	}
	for rule, n := range held {
		switch {
		case n <= share:
		case open[rule] && !perhaps[victim]:
			e.fail("all keys of rule %s are denied, and it lost one: rule %s holds more than its share, and one of its keys is not denied", victim, rule)
		case n > held[victim] && (open[rule] || !perhaps[victim]):
			e.fail("rule %s lost a key: it holds %d, and rule %s holds %d", victim, held[victim], rule, n)
		}
	}
}

// checkHeld checks what is left of every key, and how many are held.
func (e *evictions) checkHeld() {
	e.t.Helper()
	for _, k := range e.keys {
		if got := left(e.t, e.l, k.rule, k.key); got != k.limit.Quota-k.used {
			e.fail("rule %s, key %s: %d hits left, want %d", k.rule, k.key, got, k.limit.Quota-k.used)
		}
	}
	if n := e.m.Len(); n < len(e.keys) || n > min(e.maxKeys, len(e.keys)+len(e.expired)) {
		e.fail("Len %d, with %d keys and %d that have expired", n, len(e.keys), len(e.expired))
	}
}

func (e *evictions) reset(rule core.Rule, key string) {
	e.t.Helper()
	e.expire()
	e.note("reset %s %s", rule.Name, key)
	reset(e.t, e.l, core.Hit{Rule: rule.Name, Key: key})
	is := func(k *usedKey) bool { return k.rule == rule.Name && k.key == key }
	e.keys, e.expired = slices.DeleteFunc(e.keys, is), slices.DeleteFunc(e.expired, is)
	e.checkHeld()
}

// grant gives hits back. A key that then has some left is denied no more, at once.
func (e *evictions) grant(rule core.Rule, key string) {
	e.t.Helper()
	e.expire()
	k, n := e.find(rule.Name, key), 1+e.r.Int64N(4)
	e.note("grant %s %s: %d", rule.Name, key, n)
	if _, err := e.l.Grant(e.t.Context(), n, core.Hit{Rule: rule.Name, Key: key}); err != nil {
		e.t.Fatal(err)
	}
	switch {
	case k == nil:
	case k.used <= n: // counts for nothing, and is held until its window ends
		e.reset(rule, key)
	default:
		k.used, k.late = k.used-n, false
	}
	e.checkHeld()
}

// reconfigure removes a rule, or adds those again that were removed.
func (e *evictions) reconfigure() {
	e.t.Helper()
	e.expire()
	if len(e.rules) < len(e.all) || len(e.all) == 1 {
		e.rules = slices.Clone(e.all)
	} else {
		i := e.r.IntN(len(e.rules))
		gone := func(k *usedKey) bool { return k.rule == e.rules[i].Name }
		e.keys, e.expired = slices.DeleteFunc(e.keys, gone), slices.DeleteFunc(e.expired, gone)
		e.rules = slices.Delete(e.rules, i, i+1)
	}
	e.note("reconfigure: %d rules", len(e.rules))
	if err := e.l.Reconfigure(core.Config{Rules: e.rules}); err != nil {
		e.t.Fatal(err)
	}
	e.checkHeld()
}
