package login_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

type broken struct{ core.Store }

func (broken) Open(string, []core.StoreRule) (core.Counters, error) { return brokenCounters{}, nil }

func (broken) Guarantees() core.Guarantees { return remote }

// remote is what a store with a server promises that keeps no deadline.
var remote = core.Guarantees{Ops: core.AllOps, Exact: true, Shared: true, OnFailure: core.FailClosed}

type brokenCounters struct{ core.Counters }

var errGone = errors.New("connection refused")

func (brokenCounters) Do(context.Context, *core.Batch) error { return errGone }

func TestTheGuardLimitsWhileTheStoreDoesNotAnswer(t *testing.T) {
	s := newSite(t, login.Config{Store: broken{}})
	s.want(many(8, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:3]")
	s.want(many(1, func(int) int { return s.right("203.0.113.2", "alice") }), "map[200:1]")
	// No address is known meanwhile: another process may have forgotten it.
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	s.want(many(1, func(int) int { return s.right("203.0.113.2", "alice") }), "map[429:1]")
	s.want(many(1, func(int) int { return s.right("203.0.113.3", "alice") }), "map[429:1]")
	s = newSite(t, login.Config{Store: broken{}, Resilience: resilient.Config{OnFailure: resilient.FailClosed}})
	s.want(many(3, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[503:3]")
}

// eventual is a store that decides locally during an outage and is not exact.
type eventual struct{ core.Store }

func (eventual) Guarantees() core.Guarantees {
	return core.Guarantees{Ops: core.AllOps, Shared: true, OnFailure: core.FailLocal}
}

func TestConfigErrorsNameTheField(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	_, err := login.NewGuard(login.Config{
		Sources: []core.KeyFunc{nil}, Secrets: [][]byte{[]byte("short")}, CookieFor: -1, KnownFor: time.Millisecond, SuspiciousAfter: -3,
		Methods: []string{}, Resilience: resilient.Config{OnFailure: resilient.FailOpen}, CookieName: "a b", Store: eventual{memory},
	})
	for _, want := range []string{"Sources[0]", "Secrets[0]: 5 bytes: must have 32 random bytes or more", "CookieFor: -1ns", "KnownFor: 1ms", "SuspiciousAfter: -3", "Methods: none", "OnFailure: fail open", `CookieName: "a b"`, "Store: login_test.eventual: is not exact (core.Guarantees.Exact)"} {
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	for want, c := range map[string]login.Config{
		"Field":                  {},
		"ForgetAddresses is set": {Field: "u", KnownFor: time.Hour, ForgetAddresses: true},
		"InsecureCookie is set":  {Field: "u", InsecureCookie: true},
		"Secrets: none":          {Field: "u", Secrets: [][]byte{}},
		`Methods[0]: ""`:         {Field: "u", Methods: []string{""}},
		`Methods[1]: "get"`:      {Field: "u", Methods: []string{"POST", "get"}},
		`(address).Limits[0]`:    {Field: "u", Attempts: core.PerMinute(-1)},
		"Resilience: floodgate":  {Field: "u", Store: broken{}, Resilience: resilient.Config{Failures: -1}},
	} {
		_, err := login.NewGuard(c)
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), strings.ReplaceAll(want, `"`, "")) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	g, err := login.NewGuard(login.Config{Field: "u", Store: eventual{memory}, AllowEventual: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = g.Close()
}
