package policy_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

func TestPoliciesAreDecidedTogether(t *testing.T) {
	for _, order := range []string{"ab", "ba"} {
		a, b := "  - {name: wide, limits: 10/m fixed_window, headers: draft-10}\n", "  - {name: narrow, key: path, limits: 2/m fixed_window, headers: draft-10}\n"
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
		if got := w.Values("Ratelimit"); len(got) != 1 || !strings.Contains(got[0], `"wide";r=0;t=60`) || !strings.Contains(got[0], `"narrow";r=1;t=60`) {
			t.Errorf("%s: RateLimit is %q", order, got)
		}
		w = s.expect(429, "GET", "/new").Header()
		if got := w.Get("Retry-After"); got != "60" {
			t.Errorf("%s: Retry-After is %q", order, got)
		}
		s.expect(429, "GET", "/a") // both deny
	}
}

func TestThreePoliciesTheLastOfWhichDenies(t *testing.T) {
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
		l := s.set.Limiter()
		d, err := l.Peek(t.Context(), 1, core.Hit{Rule: name})
		if err != nil || d.Remaining != 4 {
			t.Errorf("%s has %d left (%v), want 4", name, d.Remaining, err)
		}
	}
}

// spy counts what is asked of a store.
type spy struct {
	core.Store
	takes, peeks, refunds atomic.Int64
}

func (s *spy) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := s.Store.Open(limiter, rules)
	return spied{c, s}, err
}

type spied struct {
	core.Counters
	spy *spy
}

func (c spied) Do(ctx context.Context, batch *core.Batch) error {
	switch batch.Op {
	case core.OpTake:
		c.spy.takes.Add(1)
	case core.OpPeek:
		c.spy.peeks.Add(1)
	case core.OpRefund:
		c.spy.refunds.Add(1)
	}
	return c.Counters.Do(ctx, batch)
}

func TestManyPoliciesAreOneTake(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	store := &spy{Store: memory}
	set, err := policy.Parse("f", []byte("policies: [{name: a, limits: 3000/h}, {name: b, limits: 500/h}, {name: c, limits: 2000/h, headers: draft-10}]"), policy.WithStore(store))
	if err != nil {
		t.Fatal(err)
	}
	const requests = 1000
	var allowed atomic.Int64
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			if d := set.Check(&explained{}); d.Allowed {
				allowed.Add(1)
			} else if d.Rule() != "b" {
				t.Errorf("denied by %s: %v", d.Rule(), d)
			}
		})
	}
	all.Wait()
	if got := allowed.Load(); got != 500 {
		t.Errorf("%d requests were allowed, want 500", got)
	}
	if takes, peeks, refunds := store.takes.Load(), store.peeks.Load(), store.refunds.Load(); takes != requests || peeks != 0 || refunds != 0 {
		t.Errorf("%d takes, %d peeks and %d refunds: want %d, 0 and 0", takes, peeks, refunds, requests)
	}
	for rule, want := range map[string]int64{"a": 2500, "b": 0, "c": 1500} {
		if d, err := set.Limiter().Peek(t.Context(), 1, core.Hit{Rule: rule}); err != nil || d.Remaining != want {
			t.Errorf("%s has %d left (%v), want %d", rule, d.Remaining, err, want)
		}
	}
	if err := errors.Join(set.Close(), memory.Close()); err != nil {
		t.Error(err)
	}
}

func TestADryRunIsOneTakeMore(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	store := &spy{Store: memory}
	set, err := policy.Parse("f", []byte("policies: [{name: a, limits: 5/h}, {name: b, limits: 5/h}, {name: c, limits: 1/h, dry-run: true}, {name: d, limits: 9/h, dry-run: true}]"), policy.WithStore(store))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if d := set.Check(&explained{}); !d.Allowed || d.DryRun {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	if takes := store.takes.Load(); takes != 6 {
		t.Errorf("%d takes, want 6", takes)
	}
	if err := errors.Join(set.Close(), memory.Close()); err != nil {
		t.Error(err)
	}
}
