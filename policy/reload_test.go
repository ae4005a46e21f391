package policy_test

import (
	"errors"
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
	s.expect(429, "PUT", "/", from("10.0.0.8")) // back, as it was
	l, _ := s.set.Limiter("a")
	if st := l.Stats(); st.Allowed != 3 || st.Denied != 3 {
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
