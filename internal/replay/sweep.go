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
	memories []*core.Memory
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
	set, err := policy.Parse(file, text, append(slices.Clone(opts), policy.WithStore(s.store))...)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.set = set
	return s, nil
}

func (s *sweep) check(r core.Request) {
	for _, l := range s.set.Limiters() {
		l.Check(r)
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

// sweepStore counts each limiter's hits once for each factor.
type sweepStore struct {
	memories []*core.Memory
	limiters []*sweepBound
}

// Bind implements [core.Store].
func (s *sweepStore) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b := &sweepBound{name: limiter, rules: rules, refused: make([]int64, len(factors))}
	for i, f := range factors {
		scaled := make([]core.StoreRule, len(rules))
		for j, r := range rules {
			scaled[j] = core.StoreRule{Name: r.Name, Limits: slices.Clone(r.Limits)}
			for k := range scaled[j].Limits {
				scale(&scaled[j].Limits[k], f)
			}
		}
		bound, err := s.memories[i].Bind(limiter, scaled)
		if err != nil {
			return nil, err
		}
		b.bounds = append(b.bounds, bound)
	}
	s.limiters = append(s.limiters, b)
	return b, nil
}

// scale multiplies a limit's quota, as far as its algorithm can have it.
func scale(l *core.Limit, f float64) {
	most := int64(core.MaxQuota)
	if l.Algorithm == core.SlidingLog {
		most = core.MaxLogQuota
	}
	times := func(n int64) int64 {
		if n == 0 {
			return 0
		}
		return min(most, max(1, int64(float64(n)*f+0.5)))
	}
	l.Quota, l.Burst = times(l.Quota), times(l.Burst)
}

// sweepBound is a limiter with all of its quotas.
type sweepBound struct {
	name     string
	rules    []core.StoreRule
	bounds   []core.Bound
	requests int64
	refused  []int64 // by each factor
}

// Take implements [core.Bound]. What it answers is the file's own quota's.
func (b *sweepBound) Take(ctx context.Context, batch *core.Batch) error {
	own := slices.Index(factors, 1)
	b.requests++
	for i, bound := range b.bounds {
		if i == own {
			continue
		}
		if err := bound.Take(ctx, batch); err != nil {
			return err
		}
		if !batch.Allowed {
			b.refused[i]++
		}
	}
	if err := b.bounds[own].Take(ctx, batch); err != nil {
		return err
	}
	if !batch.Allowed {
		b.refused[own]++
	}
	return nil
}

// Refund implements [core.Bound]; nothing that replays gives back.
func (b *sweepBound) Refund(context.Context, *core.Batch) error { return errUnused }

// Reset implements [core.Bound].
func (b *sweepBound) Reset(context.Context, *core.Batch) error { return errUnused }

// Rebind implements [core.Bound]; nothing that replays changes its policies.
func (b *sweepBound) Rebind([]core.StoreRule) (core.Bound, error) { return nil, errUnused }

var errUnused = errors.New("replay: a sweep only takes")

// curve makes the report of a limiter.
func (b *sweepBound) curve() Sweep {
	s := Sweep{Policy: b.name, Requests: b.requests}
	for i, f := range factors {
		p := SweepPoint{Factor: f, Refused: b.refused[i]}
		for _, r := range b.rules {
			for _, l := range r.Limits {
				scale(&l, f)
				p.Limits = append(p.Limits, policy.Words(l))
				p.Quotas = append(p.Quotas, l.Quota)
			}
		}
		s.Points = append(s.Points, p)
	}
	return s
}
