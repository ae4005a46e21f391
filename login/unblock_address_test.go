package login_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/login"
)

// UnblockAddress lets an address in, that of a whole IPv6 network too, and forgets no failures.
func TestUnblockAddress(t *testing.T) {
	for seen, typed := range map[string]string{"203.0.113.1": "203.0.113.1", "2001:db8::1": "2001:db8::2"} {
		s := newSite(t, login.Config{})
		many(30, func(i int) int { return s.wrong(seen, ip(i)) })
		if st, err := s.guard.Status(t.Context(), "alice", seen); err != nil || !st.Address.Denied {
			t.Errorf("%s: %+v, %v", seen, st, err)
		}
		many(5, func(int) int { return s.wrong("203.0.113.9", "alice") })
		if err := s.guard.UnblockAddress(t.Context(), typed); err != nil {
			t.Error(err)
		}
		st, err := s.guard.Status(t.Context(), "alice", seen)
		if err != nil || st.Address.Denied || st.Account.Remaining != st.Account.Limit.Quota-5 {
			t.Errorf("%s: %+v, %v", seen, st, err)
		}
	}
	if err := newSite(t, login.Config{}).guard.UnblockAddress(t.Context(), "alice"); err == nil {
		t.Error("a username is taken for an address")
	}
}
