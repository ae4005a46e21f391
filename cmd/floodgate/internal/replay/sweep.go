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

// sweep tries each policy of a file by itself with other quotas: one trial for each factor.
type sweep []*trial

// trial is a policy file whose quotas are all multiplied by a factor.
type trial struct {
	scaled
	memory   *core.Memory
	set      *policy.Set
	only     []core.Checker // one for each policy
	requests []int64
	denied   []int64
}

func newSweep(name string, text []byte, clock func() time.Time, opts []policy.Option) (s sweep, err error) {
	for _, factor := range factors {
		t := &trial{scaled: scaled{factor: factor}}
		s = append(s, t)
		if t.memory, err = core.NewMemory(core.MemoryConfig{Clock: clock}); err != nil {
			return nil, errors.Join(err, s.close())
		}
		t.Store = t.memory
		if t.set, err = policy.Parse(name, text, append(slices.Clone(opts), policy.WithStore(&t.scaled))...); err != nil {
			return nil, errors.Join(err, s.close())
		}
		for _, p := range t.set.Policies() {
			only, err := t.set.Only(p.Name)
			if err != nil {
				return nil, errors.Join(err, s.close())
			}
			t.only = append(t.only, only)
		}
		t.requests, t.denied = make([]int64, len(t.only)), make([]int64, len(t.only))
	}
	return s, nil
}

// check has each policy decide on a request. It looks at the store and not at the decision, because
// a dry run allows what its limits deny.
func (s sweep) check(r *request) {
	for _, t := range s {
		for i, only := range t.only {
			t.asked, t.over = false, false
			check(only, r)
			if t.asked {
				t.requests[i]++
			}
			if t.over {
				t.denied[i]++
			}
		}
	}
}

func (s sweep) close() error {
	var errs []error
	for _, t := range s {
		if t.set != nil {
			errs = append(errs, t.set.Close())
		}
		if t.memory != nil {
			errs = append(errs, t.memory.Close())
		}
	}
	return errors.Join(errs...)
}

// curves makes the report.
func (s sweep) curves() []Sweep {
	if s == nil {
		return nil
	}
	var all []Sweep
	for i, p := range s[0].set.Policies() {
		curve := Sweep{Policy: p.Name, Requests: s[0].requests[i]}
		for _, t := range s {
			point := SweepPoint{Factor: t.factor, Denied: t.denied[i]}
			for _, r := range p.Rules {
				for _, l := range t.limits(r.Limits) {
					point.Limits = append(point.Limits, l.String())
					point.Quotas = append(point.Quotas, l.Quota)
				}
			}
			curve.Points = append(curve.Points, point)
		}
		all = append(all, curve)
	}
	return all
}

// scaled is a store in which all quotas are multiplied by a factor. It records whether a request
// came to it, and whether it denied the request.
type scaled struct {
	core.Store
	factor      float64
	asked, over bool
}

// Open implements [core.Store].
func (s *scaled) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	own := slices.Clone(rules)
	for i := range own {
		own[i].Limits = s.limits(own[i].Limits)
	}
	counters, err := s.Store.Open(limiter, own)
	return &scaledCounters{counters, s, rules}, err
}

func (s *scaled) limits(limits []core.Limit) []core.Limit {
	limits = slices.Clone(limits)
	for i := range limits {
		l := &limits[i]
		l.Quota, l.Burst = s.scale(l.Algorithm, l.Quota), s.scale(l.Algorithm, l.Burst)
	}
	return limits
}

// scale multiplies a quota and caps it at the algorithm's maximum.
func (s *scaled) scale(a core.Algorithm, n int64) int64 {
	if n == 0 || n == core.Unlimited {
		return n
	}
	most := int64(core.MaxQuota)
	if a == core.SlidingLog {
		most = core.MaxLogQuota
	}
	return min(most, max(1, int64(float64(n)*s.factor+0.5)))
}

type scaledCounters struct {
	core.Counters
	store *scaled
	rules []core.StoreRule // with the file's own quotas
}

// Do implements [core.Counters].
func (c *scaledCounters) Do(ctx context.Context, batch *core.Batch) error {
	own := make([][]int64, len(batch.Items))
	for i := range batch.Items {
		item := &batch.Items[i]
		own[i], item.Quotas = item.Quotas, slices.Clone(item.Quotas)
		for j, q := range own[i] {
			item.Quotas[j] = c.store.scale(c.rules[item.Rule].Limits[j].Algorithm, q)
		}
	}
	err := c.Counters.Do(ctx, batch)
	for i := range own {
		batch.Items[i].Quotas = own[i]
	}
	if batch.Op == core.OpTake || batch.Op == core.OpPeek {
		c.store.asked, c.store.over = true, !batch.Allowed // the last one decides
	}
	return err
}
