package login_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// says is a store with other traits around another store.
type says struct {
	core.Store
	traits core.Traits
}

func (s says) Traits() core.Traits { return s.traits }

// embeds is a store without a method Traits.
type embeds struct{ core.Store }

func TestAStoreTooWeakForALoginIsRefused(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	cached := func(s core.Store) core.Store { return core.Must(denycache.New(s, denycache.Config{})) }
	behind := func(s core.Store, m resilient.Mode) core.Store {
		return core.Must(resilient.New(s, resilient.Config{Meanwhile: m}))
	}
	closes := says{memory, core.Traits{Exact: true, NeverOpens: true, Closes: true}}
	opens := behind(closes, resilient.ModeOpen)
	approximate := says{memory, core.Traits{NeverOpens: true}}
	const never, notExact = "core.Traits.NeverOpens", "core.Traits.Exact"
	for name, row := range map[string]struct {
		store core.Store
		want  string
	}{
		"ModeOpen":                                       {opens, never},
		"ModeOpen behind a deny cache":                   {cached(opens), never},
		"ModeOpen behind ModeInProcess":                  {behind(opens, resilient.ModeInProcess), never},
		"ModeOpen behind ModeClosed":                     {behind(opens, resilient.ModeClosed), never},
		"ModeOpen behind a deny cache and ModeInProcess": {behind(cached(opens), resilient.ModeInProcess), never},
		"without traits":                                 {embeds{closes}, never},
		"without traits, around ModeOpen":                {embeds{opens}, never},
		"without traits, behind a deny cache":            {cached(embeds{closes}), never},
		"without traits, behind ModeInProcess":           {behind(embeds{closes}, resilient.ModeInProcess), never},
		"not exact":                                      {approximate, notExact},
		"not exact, behind a deny cache":                 {cached(approximate), notExact},
		"not exact, behind ModeClosed":                   {behind(approximate, resilient.ModeClosed), notExact},
	} {
		_, err := login.NewGuard(login.Config{Field: "u", Store: row.store})
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want an error that names %s", name, err, row.want)
		}
	}
	for name, store := range map[string]core.Store{
		"Memory": memory, "closes": closes, "closes, cached": cached(closes), "closes, behind": behind(closes, resilient.ModeInProcess), "not exact": approximate,
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
	s := newSite(t, login.Config{Store: core.Must(denycache.New(core.Must(resilient.New(broken{}, resilient.Config{Meanwhile: resilient.ModeClosed})), denycache.Config{}))})
	s.want(many(3, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[503:3]")
	for _, almost := range []core.Traits{{Exact: true, NeverOpens: true, KeepsDeadline: true}, {Exact: true, NeverOpens: true, FailsFast: true}} {
		s = newSite(t, login.Config{Store: says{broken{}, almost}})
		s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
	}
	s = newSite(t, login.Config{Store: core.Must(denycache.New(broken{}, denycache.Config{}))})
	s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
}

func TestANilStoreIsAConfigurationError(t *testing.T) {
	for name, store := range map[string]core.Store{
		"*core.Memory": (*core.Memory)(nil), "*resilient.Store": (*resilient.Store)(nil), "*denycache.Store": (*denycache.Store)(nil), "embedded Store": embeds{},
	} {
		_, err := login.NewGuard(login.Config{Field: "u", Store: store})
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := resilient.New(store, resilient.Config{}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("resilient.New of %s: %v", name, err)
		}
		if _, err := denycache.New(store, denycache.Config{}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("denycache.New of %s: %v", name, err)
		}
	}
}
