package login_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// The package comment and the documents state these numbers, and what follows from them.
func TestTheDefaultsAreThoseOfTheDocuments(t *testing.T) {
	for name, row := range map[string]struct{ got, want core.Limit }{
		"DefaultAttempts": {login.DefaultAttempts, core.Limit{Quota: 20, Window: time.Minute}},
		"DefaultFailures": {login.DefaultFailures, core.Limit{
			Quota: 5, Window: 15 * time.Minute, Algorithm: core.FixedWindow,
			Lockout: core.Lockout{First: 30 * time.Second, Factor: 2, Max: 60 * time.Minute, Decay: 60 * time.Minute},
		}},
		"DefaultAccountFailures": {login.DefaultAccountFailures, core.Limit{Quota: 100, Window: 60 * time.Minute, Algorithm: core.BucketedWindow, Precision: 5 * time.Minute}},
		"DefaultDeviceFailures":  {login.DefaultDeviceFailures, core.Limit{Quota: 5, Window: 60 * time.Minute, Algorithm: core.FixedWindow}},
		"DefaultTrustedFailures": {login.DefaultTrustedFailures, core.Limit{Quota: 50, Window: 60 * time.Minute, Algorithm: core.BucketedWindow, Precision: 5 * time.Minute}},
	} {
		if row.got != row.want {
			t.Errorf("%s is %+v, want %+v", name, row.got, row.want)
		}
	}
	const day = 24 * time.Hour
	if login.DefaultName != "login" || login.DefaultKnownFor != 14*day || login.DefaultCookieName != "__Host-device" || login.DefaultCookieFor != 90*day || login.MinSecret != 32 {
		t.Error("another default has changed")
	}
}

func TestConfigErrorsNameTheField(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	eventual := says{memory, core.Guarantees{Ops: core.AllOps, Shared: true, OnFailure: core.FailLocal}}
	_, err := login.NewGuard(login.Config{
		Sources: []core.KeyFunc{nil}, Secrets: [][]byte{[]byte("short")}, CookieFor: -1, KnownFor: time.Millisecond, SuspiciousAfter: -3,
		Methods: []string{}, Resilience: resilient.Config{OnFailure: resilient.FailOpen}, CookieName: "a b", Store: eventual,
	})
	for _, want := range []string{"Sources[0]", "Secrets[0]: 5 bytes: must have 32 random bytes or more", "CookieFor: -1ns", "KnownFor: 1ms", "SuspiciousAfter: -3", "Methods: none", "OnFailure: fail open", `CookieName: "a b"`, "Store: login_test.says: is not exact (core.Guarantees.Exact)"} {
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
	g, err := login.NewGuard(login.Config{Field: "u", Store: eventual, AllowEventual: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = g.Close()
}

// The first and the last value of each range is accepted, and the next one is an error.
func TestRangesOfTheConfiguration(t *testing.T) {
	const day = 24 * time.Hour
	for name, row := range map[string]struct {
		c  login.Config
		ok bool
	}{
		"the shortest cookie": {login.Config{CookieFor: time.Second}, true}, "a shorter one": {login.Config{CookieFor: time.Second - 1}, false},
		"the longest cookie": {login.Config{CookieFor: 350 * day}, true}, "a longer one": {login.Config{CookieFor: 350*day + 1}, false},
		"the shortest memory": {login.Config{KnownFor: time.Second}, true}, "a shorter memory": {login.Config{KnownFor: time.Second - 1}, false},
		"the longest memory": {login.Config{KnownFor: 350 * day}, true}, "a longer memory": {login.Config{KnownFor: 350*day + 1}, false},
		"the shortest secret": {login.Config{Secrets: [][]byte{make([]byte, login.MinSecret)}}, true}, "a shorter secret": {login.Config{Secrets: [][]byte{secret, make([]byte, login.MinSecret-1)}}, false},
		"suspicion from the first failure": {login.Config{SuspiciousAfter: 1}, true},
		"an insecure cookie":               {login.Config{InsecureCookie: true, CookieName: "device"}, true},
		"a secure cookie":                  {login.Config{InsecureCookie: true, CookieName: "__Secure-x"}, false},
		"several methods":                  {login.Config{Methods: []string{"GET", "POST"}}, true},
	} {
		row.c.Field = "username"
		g, err := login.NewGuard(row.c)
		if (err == nil) != row.ok || err != nil && !errors.Is(err, core.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = g.Close()
		}
	}
}

// The guard neither writes into the slices of the caller nor follows changes of them.
func TestAGuardHasSlicesOfItsOwn(t *testing.T) {
	for _, first := range []string{"GET", "PUT"} {
		methods, sources := []string{first, "PATCH", "DELETE"}, []core.KeyFunc{login.BasicUser()}
		s := newSite(t, login.Config{Methods: methods[:1], Sources: sources})
		if methods[1] != "PATCH" {
			t.Errorf("%s: the caller's slice is %q", first, methods)
		}
		methods[0], sources[0] = "PATCH", func([]byte, core.Request) ([]byte, error) { return []byte("other"), nil }
		r := &request{ctx: context.Background(), method: first, peer: "203.0.113.1", header: http.Header{}}
		s.want(many(1, func(int) int { return s.serve(r, 401) }), "map[400:1]")
	}
}

func TestAStoreTooWeakForALoginIsAnError(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	cached := func(s core.Store) core.Store { return core.Must(denycache.New(s, denycache.Config{})) }
	behind := func(s core.Store, m resilient.Mode) core.Store {
		return core.Must(resilient.New(s, resilient.Config{OnFailure: m}))
	}
	closes := says{memory, remote}
	opens := behind(closes, resilient.FailOpen)
	approximate := says{memory, core.Guarantees{Ops: core.AllOps, OnFailure: core.FailLocal}}
	const open, notExact = "core.Guarantees.OnFailure", "core.Guarantees.Exact"
	for name, row := range map[string]struct {
		store core.Store
		want  string
	}{
		"fails open":                    {opens, open},
		"fails open, cached":            {cached(opens), open},
		"fails open, behind Local":      {behind(opens, resilient.Local), open},
		"fails open, behind FailClosed": {behind(opens, resilient.FailClosed), open},
		"fails open, cached, behind":    {behind(cached(opens), resilient.Local), open},
		"not exact":                     {approximate, notExact},
		"not exact, cached":             {cached(approximate), notExact},
		"not exact, behind FailClosed":  {behind(approximate, resilient.FailClosed), notExact},
	} {
		_, err := login.NewGuard(login.Config{Field: "u", Store: row.store})
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want an error that names %s", name, err, row.want)
		}
	}
	for name, store := range map[string]core.Store{
		"Memory": memory, "closes": closes, "closes, cached": cached(closes), "closes, behind": behind(closes, resilient.Local), "not exact": approximate,
	} {
		g, err := login.NewGuard(login.Config{Field: "u", Name: strings.ReplaceAll(strings.ReplaceAll(name, " ", ""), ",", "."), Store: store, AllowEventual: name == "not exact"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = g.Close()
	}
}

func TestANilStoreIsAConfigurationError(t *testing.T) {
	for _, store := range []core.Store{(*core.Memory)(nil), (*resilient.Store)(nil), (*denycache.Store)(nil)} {
		_, err := login.NewGuard(login.Config{Field: "u", Store: store})
		if name := fmt.Sprintf("%T", store); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
