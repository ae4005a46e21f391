package login_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// The caller may change its slices afterwards.
func TestTheGuardHasItsOwnSlices(t *testing.T) {
	sources, methods := []core.KeyFunc{keyfuncs.PostField("username")}, []string{"POST"}
	s := newSite(t, login.Config{Sources: sources, Methods: methods})
	clear(sources)
	clear(methods)
	s.right("203.0.113.1", "alice")
	s.wantKnown("203.0.113.1", "alice", true)
}

// Each error names its field. The first and the last value of a range is accepted.
func TestConfigErrorsNameTheField(t *testing.T) {
	const day = 24 * time.Hour
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	eventual := says{memory, core.Guarantees{Ops: core.AllOps, Shared: true, OnFailure: core.FailLocal}}
	opens := core.Must(resilient.New(says{memory, remote}, resilient.Config{OnFailure: resilient.FailOpen}))
	bytes := func(n int) []byte { return make([]byte, n) }
	for _, row := range []struct {
		want string // "": no error
		c    login.Config
	}{
		{"Field", login.Config{}}, {"Sources[0]", login.Config{Sources: []core.KeyFunc{nil}}},
		{"", login.Config{Field: "u", Failures: core.PerHour(core.MaxQuota)}},
		{`("address").Limits[0]`, login.Config{Field: "u", Attempts: core.PerMinute(-1)}},
		{`Methods[1]: "get": must be a method in capitals`, login.Config{Field: "u", Methods: []string{"POST", "get"}}},
		{"Methods[0]", login.Config{Field: "u", Methods: []string{""}}},
		{"SuspiciousAfter: -1: must be 0 or more", login.Config{Field: "u", SuspiciousAfter: -1}},
		{"", login.Config{Field: "u", Secrets: [][]byte{bytes(32)}}},
		{"Secrets[1]: 31 bytes: must have 32 random bytes or more", login.Config{Field: "u", Secrets: [][]byte{bytes(32), bytes(31)}}},
		{`CookieName: "a b": must be the name of a cookie`, login.Config{Field: "u", CookieName: "a b"}},
		{"InsecureCookie", login.Config{Field: "u", InsecureCookie: true}},
		{`CookieName: "__Secure-x": must not begin with __Host- or __Secure- if InsecureCookie is set`, login.Config{Field: "u", InsecureCookie: true, CookieName: "__Secure-x"}},
		{"", login.Config{Field: "u", InsecureCookie: true, CookieName: "device"}},
		{"CookieFor: 999.999999ms: must be from 1s to 350 days, or 0 for the default", login.Config{Field: "u", CookieFor: time.Second - 1}},
		{"", login.Config{Field: "u", CookieFor: time.Second, KnownFor: 350 * day}},
		{"", login.Config{Field: "u", CookieFor: 350 * day, KnownFor: time.Second}},
		{"CookieFor", login.Config{Field: "u", CookieFor: 350*day + 1}},
		{"KnownFor: 8400h0m0.000000001s: must be from 1s to 350 days", login.Config{Field: "u", KnownFor: 350*day + 1}},
		{"Resilience.OnFailure: fail open: must be resilient.Local or resilient.FailClosed", login.Config{Field: "u", Resilience: resilient.Config{OnFailure: resilient.FailOpen}}},
		{"Resilience", login.Config{Field: "u", Store: broken(), Resilience: resilient.Config{Failures: -1}}},
		{"Store: *core.Memory: is nil", login.Config{Field: "u", Store: (*core.Memory)(nil)}},
		{"Store: *resilient.Store: may allow attempts without counting them", login.Config{Field: "u", Store: opens}},
		{"core.Guarantees.OnFailure", login.Config{Field: "u", Store: core.Must(denycache.New(opens, denycache.Config{}))}},
		{"Store: login_test.says: is not exact (core.Guarantees.Exact)", login.Config{Field: "u", Store: eventual}},
		{"", login.Config{Field: "u", Store: says{memory, remote}, Name: "remote"}},
	} {
		g, err := login.NewGuard(row.c)
		if err == nil {
			_ = g.Close()
		}
		if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%v, want an error that names %q", err, row.want)
		}
	}
	_, err := login.NewGuard(login.Config{Secrets: [][]byte{nil}, CookieFor: -1})
	for _, field := range []string{"Field", "Secrets", "CookieFor"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not among the errors: %v", field, err)
		}
	}
}
