package replay

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// factors are what quotas are multiplied by in a sweep.
var factors = []float64{0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10}

// sweep tries each policy of a file by itself with other quotas.
type sweep struct {
	set      *policy.Set
	store    *sweepStore
	policies []*swept
	memories []*core.Memory
}

// swept is a policy with all of its quotas.
type swept struct {
	policy.Policy
	only     core.Checker
	requests int64
	denied   []int64 // by each factor
}

func newSweep(file string, text []byte, clock func() time.Time, opts []policy.Option) (*sweep, error) {
	s := &sweep{store: &sweepStore{}}
	for range factors {
		m, err := core.NewMemory(core.MemoryConfig{Clock: clock})
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.memories = append(s.memories, m)
	}
	s.store.memories = s.memories
	set, err := policy.Parse(file, text, append(slices.Clone(opts), policy.WithoutWaiting(), policy.WithStore(withoutLeases{s.store, nil}))...)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.set = set
	for _, p := range set.Policies() {
		only, err := set.Only(p.Name)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.policies = append(s.policies, &swept{Policy: p, only: only, denied: make([]int64, len(factors))})
	}
	return s, nil
}

func (s *sweep) check(r core.Request) {
	for _, p := range s.policies {
		s.store.current = p
		p.only.Check(r)
	}
}

func (s *sweep) close() error {
	var errs []error
	if s.set != nil {
		errs = append(errs, s.set.Close())
	}
	for _, m := range s.memories {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// curves makes the report.
func (s *sweep) curves() []Sweep {
	all := make([]Sweep, len(s.policies))
	for i, p := range s.policies {
		all[i] = p.curve()
	}
	return all
}

// sweepStore counts the hits of the current policy once for each factor.
type sweepStore struct {
	memories []*core.Memory
	current  *swept
}

// Guarantees implements [core.Store].
func (s *sweepStore) Guarantees() core.Guarantees {
	return core.Guarantees{Ops: core.OpTake | core.OpPeek}
}

// Open implements [core.Store].
func (s *sweepStore) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c := &sweepCounters{store: s, rules: slices.Clone(rules)}
	for i, f := range factors {
		scaled := make([]core.StoreRule, len(rules))
		for j, r := range rules {
			scaled[j] = core.StoreRule{Name: r.Name, Limits: slices.Clone(r.Limits)}
			for k := range scaled[j].Limits {
				scale(&scaled[j].Limits[k], f)
			}
		}
		counters, err := s.memories[i].Open(limiter, scaled)
		if err != nil {
			return nil, err
		}
		c.scaled = append(c.scaled, counters)
	}
	return c, nil
}

// scale multiplies a limit's quota, as far as its algorithm can have it.
func scale(l *core.Limit, f float64) {
	l.Quota, l.Burst = times(l.Algorithm, l.Quota, f), times(l.Algorithm, l.Burst, f)
}

// times multiplies a quota, as far as an algorithm can have it.
func times(a core.Algorithm, n int64, f float64) int64 {
	most := int64(core.MaxQuota)
	if a == core.SlidingLog {
		most = core.MaxLogQuota
	}
	if n == 0 || n == core.Unlimited {
		return n
	}
	return min(most, max(1, int64(float64(n)*f+0.5)))
}

// sweepCounters are a limiter's counters, once for each factor.
type sweepCounters struct {
	store  *sweepStore
	rules  []core.StoreRule // with the file's own quotas
	scaled []core.Counters
	own    [][]int64 // of the items of a batch: their quotas as the file has them
}

// scaleItems multiplies the quotas that items have of their own.
func (c *sweepCounters) scaleItems(batch *core.Batch, f float64) {
	for i := range batch.Items {
		item := &batch.Items[i]
		for j, q := range c.own[i] {
			item.Quotas[j] = times(c.rules[item.Rule].Limits[j].Algorithm, q, f)
		}
	}
}

// Do implements [core.Counters]. It returns the result with the file's own quota.
func (c *sweepCounters) Do(ctx context.Context, batch *core.Batch) error {
	if batch.Op&(core.OpTake|core.OpPeek) == 0 {
		return core.ErrUnsupported // a replay does nothing else
	}
	own := slices.Index(factors, 1)
	p := c.store.current
	p.requests++
	c.own = c.own[:0]
	for i := range batch.Items {
		c.own = append(c.own, slices.Clone(batch.Items[i].Quotas))
	}
	defer c.scaleItems(batch, 1)
	for i, counters := range c.scaled {
		if i == own {
			continue
		}
		c.scaleItems(batch, factors[i])
		if err := counters.Do(ctx, batch); err != nil {
			return err
		}
		if !batch.Allowed {
			p.denied[i]++
		}
	}
	c.scaleItems(batch, 1)
	if err := c.scaled[own].Do(ctx, batch); err != nil {
		return err
	}
	if !batch.Allowed {
		p.denied[own]++
	}
	return nil
}

// Reopen implements [core.Counters].
func (c *sweepCounters) Reopen([]core.StoreRule) (core.Counters, error) { return nil, errUnused }

// curve makes the report of a policy.
func (p *swept) curve() Sweep {
	s := Sweep{Policy: p.Name, Requests: p.requests}
	for i, f := range factors {
		point := SweepPoint{Factor: f, Denied: p.denied[i]}
		for _, r := range p.Rules {
			for _, l := range r.Limits {
				scale(&l, f)
				point.Limits = append(point.Limits, policy.Words(l))
				point.Quotas = append(point.Quotas, l.Quota)
			}
		}
		s.Points = append(s.Points, point)
	}
	return s
}
