package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

func TestCountsStayWhileAFileChanges(t *testing.T) {
	s := newSite(t, "policies: [{name: a, key: ip, match: {methods: [GET]}, limits: 2/m}, {name: b, limits: 1/m, match: {methods: [PUT]}}]")
	s.expect(200, "GET", "/")
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	s.expect(200, "PUT", "/", from("10.0.0.9"))
	s.replace("policies: [{name: b, limits: 1/m, match: {methods: [PUT]}}, {name: a, key: ip, match: {methods: [GET]}, limits: 3/m}]")
	s.expect(200, "GET", "/") // raised
	s.expect(429, "GET", "/")
	s.expect(429, "PUT", "/", from("10.0.0.9")) // unchanged
	s.replace("policies: [{name: a, key: ip, match: {methods: [GET]}, limits: 1/m}]")
	s.expect(429, "GET", "/") // lowered
	s.expect(200, "PUT", "/", from("10.0.0.9"))
	s.replace("policies: [{name: a, key: ip, match: {methods: [GET]}, limits: 1/m}, {name: b, limits: 1/m, match: {methods: [PUT]}}]")
	s.expect(200, "PUT", "/", from("10.0.0.8")) // back: what was removed begins anew
	s.expect(429, "PUT", "/", from("10.0.0.8"))
	if st := s.set.Limiter().Stats(); st.Allowed != 6 || st.Denied != 5 {
		t.Errorf("stats go on over changes: %+v", st)
	}
}

func TestABrokenChangeChangesNothing(t *testing.T) {
	s := newSite(t, "policies: [{name: a, limits: 1/m}]")
	for _, text := range []string{"", "policies: [{name: a, limits: 5/x}]", "store: {redis: {address: 'a:1'}}\npolicies: [{name: a, limits: 5/m}]", "local: {max-keys: 5}\npolicies: [{name: a, limits: 5/m}]"} {
		if err := s.set.Replace([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	if err := s.set.Reload(); err == nil || !strings.Contains(err.Error(), "Replace") {
		t.Errorf("Reload without a file: %v", err)
	}
}

func TestAClosedSetFails(t *testing.T) {
	set, err := policy.Parse("f", []byte("policies: [{name: a, limits: 1/m}]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(set.Close(), set.Close()); err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, set: set}
	s.mount(set)
	s.expect(503, "GET", "/")
	if err := set.Replace([]byte("policies: [{name: a, limits: 1/m}]")); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Replace: %v", err)
	}
}

func TestCountingMayChangeWhereTheProgramGivesTheStore(t *testing.T) {
	const head = "store: {redis: {address: 'a:1'}}\n"
	s := newSite(t, head+"policies: [{name: a, limits: 1/m, counting: local}]")
	s.expect(200, "GET", "/")
	s.replace(head + "policies: [{name: a, limits: 1/m}]")
	s.expect(429, "GET", "/")
}

// A rejected change leaves the policies in force unchanged, whatever it would
// have removed: even the counters of a rule that it does not have.
func TestARefusedChangeTakesNoCountersAway(t *testing.T) {
	const two = "{name: a, rules: [{name: one, limits: 100/h}, {name: two, limits: 2/h}]}"
	for name, text := range map[string]string{
		"it lacks what is mounted": "policies: [{name: a, rules: [{name: one, limits: 100/h}]}]",
		"another policy is wrong":  "policies: [{name: a, rules: [{name: one, limits: 100/h}]}, {name: b, rules: [{name: x, limits: 1/s name=l}, {name: y, limits: 2/s name=l}]}]",
	} {
		s := newSite(t, "policies: ["+two+", {name: b, limits: 1000/h}]")
		if _, err := s.set.Only("b"); err != nil {
			t.Fatal(err)
		}
		s.expect(200, "GET", "/")
		if err := s.set.Replace([]byte(text)); err == nil {
			t.Fatalf("%s: it is taken", name)
		}
		s.expect(200, "GET", "/")
		s.expect(429, "GET", "/")
		s.expect(429, "GET", "/")
	}
}

// picky is a store that does not take every limit.
type picky struct{ core.Store }

func (p picky) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	if err := refuse(rules); err != nil {
		return nil, err
	}
	c, err := p.Store.Open(limiter, rules)
	return pickyCounters{c}, err
}

type pickyCounters struct{ core.Counters }

func (p pickyCounters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	if err := refuse(rules); err != nil {
		return nil, err
	}
	c, err := p.Counters.Reopen(rules)
	return pickyCounters{c}, err
}

func refuse(rules []core.StoreRule) error {
	for _, r := range rules {
		if r.Limits[0].Quota == 13 {
			return fmt.Errorf("%w: quota 13", core.ErrConfig)
		}
	}
	return nil
}

// If only the store rejects a limit, the former policies stay in force.
func TestAChangeThatTheStoreRefuses(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	defer memory.Close() //nolint:errcheck // nothing depends on it
	set, err := policy.Parse("f", []byte("policies: [{name: a, rules: [{name: one, limits: 100/h}, {name: two, limits: 2/h}]}, {name: b, limits: 1000/h}]"), policy.WithStore(picky{memory}))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close() //nolint:errcheck // nothing depends on it
	err = set.Replace([]byte("policies: [{name: a, rules: [{name: one, limits: 100/h}]}, {name: b, limits: 13/h}]"))
	if err == nil || !strings.Contains(err.Error(), "quota 13") {
		t.Fatalf("the change: %v", err)
	}
	for i := range 4 {
		if d := set.Check(&explained{}); d.Allowed != (i < 2) {
			t.Errorf("request %d: %+v", i, d)
		}
	}
}
