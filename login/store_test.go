package login_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// says is a store with other guarantees around another store.
type says struct {
	core.Store
	guarantees core.Guarantees
}

func (s says) Guarantees() core.Guarantees { return s.guarantees }

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

// A store that keeps a deadline and fails fast is not put behind another one, so that it
// does what its owner has configured for an outage.
func TestASharedStoreIsPutBehindAResilientOne(t *testing.T) {
	s := newSite(t, login.Config{Store: core.Must(denycache.New(core.Must(resilient.New(broken{}, resilient.Config{OnFailure: resilient.FailClosed})), denycache.Config{}))})
	s.want(many(3, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[503:3]")
	slow, late := remote, remote
	slow.KeepsDeadline, late.FailsFast = true, true
	for _, almost := range []core.Guarantees{slow, late} {
		s = newSite(t, login.Config{Store: says{broken{}, almost}})
		s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
	}
	s = newSite(t, login.Config{Store: core.Must(denycache.New(broken{}, denycache.Config{}))})
	s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
}

func TestANilStoreIsAConfigurationError(t *testing.T) {
	for _, store := range []core.Store{(*core.Memory)(nil), (*resilient.Store)(nil), (*denycache.Store)(nil)} {
		_, err := login.NewGuard(login.Config{Field: "u", Store: store})
		if name := fmt.Sprintf("%T", store); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
