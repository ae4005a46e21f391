package policy_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

func TestPoliciesAreDecidedTogether(t *testing.T) {
	for _, order := range []string{"ab", "ba"} {
		a, b := "  - {name: wide, limits: 10/m, headers: draft-10}\n", "  - {name: narrow, key: path, limits: 2/m, headers: draft-10}\n"
		if order == "ba" {
			a, b = b, a
		}
		s := newSite(t, "policies:\n"+a+b)
		for range 2 {
			s.expect(200, "GET", "/a")
		}
		for range 20 {
			s.expect(429, "GET", "/a")
		}
		var w http.Header
		for range 8 { // all that wide has left, at 2 for each path
			w = s.expect(200, "GET", "/"+time.Duration(s.reached.Load()).String()).Header()
		}
		if got := w.Values("Ratelimit"); len(got) != 2 || !slices.Contains(got, `"wide";r=0;t=60`) || !slices.Contains(got, `"narrow";r=1;t=60`) {
			t.Errorf("%s: RateLimit is %q", order, got)
		}
		w = s.expect(429, "GET", "/new").Header()
		if got := w.Get("Retry-After"); got != "60" {
			t.Errorf("%s: Retry-After is %q", order, got)
		}
		s.expect(429, "GET", "/a") // both refuse
	}
}

func TestThreePoliciesTheLastOfWhichRefuses(t *testing.T) {
	s := newSite(t, `
policies:
  - {name: a, limits: 5/m}
  - {name: b, limits: 5/m}
  - {name: c, limits: 1/m}
`)
	s.expect(200, "GET", "/")
	for range 9 {
		s.expect(429, "GET", "/")
	}
	for _, name := range []string{"a", "b"} {
		l, _ := s.set.Limiter(name)
		d, err := l.Peek(t.Context(), 1, core.Hit{Rule: name})
		if err != nil || d.Remaining != 4 {
			t.Errorf("%s has %d left (%v), want 4", name, d.Remaining, err)
		}
	}
}

type spy struct {
	core.Store
	blind bool
	takes map[string]int // that were to charge
}

func (s *spy) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.Store.Bind(limiter, rules)
	return &spied{b, s, limiter}, err
}

type spied struct {
	core.Bound
	spy  *spy
	name string
}

func (b *spied) Take(ctx context.Context, batch *core.Batch) error {
	if !batch.Peek {
		b.spy.takes[b.name]++
	} else if b.spy.blind {
		for i := range batch.Items {
			for j := range batch.Items[i].Results {
				batch.Items[i].Results[j] = core.Result{Allowed: true, Remaining: 1}
			}
		}
		batch.Allowed = true
		return nil
	}
	return b.Bound.Take(ctx, batch)
}

func TestWhatOnePolicyRefusesIsChargedToNone(t *testing.T) {
	for _, blind := range []bool{false, true} {
		memory := core.Must(core.NewMemory(core.MemoryConfig{}))
		defer memory.Close() //nolint:errcheck // nothing depends on it
		store := &spy{Store: memory, blind: blind, takes: map[string]int{}}
		set, err := policy.Parse("f", []byte("policies: [{name: a, limits: 9/h}, {name: b, limits: 9/h}, {name: c, limits: 2/h}]"), policy.WithStore(store))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			if d := set.Check(&explained{}); d.Allowed != (i < 2) || !d.Allowed && d.Limiter != "c" {
				t.Errorf("blind %t, request %d: %+v", blind, i, d)
			}
		}
		want := 2
		if blind {
			want = 6
		}
		if store.takes["a"] != want {
			t.Errorf("blind %t: a was charged %d times, want %d", blind, store.takes["a"], want)
		}
		store.blind = false
		for _, name := range []string{"a", "b"} {
			l, _ := set.Limiter(name)
			if d, err := l.Peek(t.Context(), 1, core.Hit{Rule: name}); err != nil || d.Remaining != 7 {
				t.Errorf("blind %t: %s has %d left (%v), want 7", blind, name, d.Remaining, err)
			}
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}
