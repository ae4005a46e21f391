package live

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/stripes"
	"github.com/floodgate-go/floodgate/live/internal/sketch"
)

const (
	deniedKeys = 2048
	nearKeys   = 1024
)

// limiter is what the page knows of a limiter.
type limiter struct {
	name    string
	manages atomic.Pointer[core.Limiter]
	denied  keys
	near    keys
	second  atomic.Int64 // of the page

	counts           stripes.Numbers // indexed by degraded and failed
	degraded, failed history
	store            timing

	mu    sync.Mutex
	rules []*rule          // of the configuration in force
	known map[string]*rule // the same, by name
	order map[string]int   // the group of each rule in the sketches
}

// What is counted for a limiter as a whole.
const (
	degraded = iota
	failed
)

// rule is what the page knows of a rule.
type rule struct {
	name   string
	group  int
	limits []string

	counts                  stripes.Numbers // indexed by the constants below
	allowed, denied, dryRun history
}

// What is counted for a rule.
const (
	allowed = iota
	denied
	dryRun
)

func newLimiter(name string, second int64) *limiter {
	l := &limiter{name: name, known: map[string]*rule{}, order: map[string]int{}}
	l.second.Store(second)
	l.denied.Sketch, l.near.Sketch = sketch.New(deniedKeys), sketch.New(nearKeys)
	l.denied.each.Store(noted)
	l.near.each.Store(noted)
	return l
}

// Observe implements [core.Observer].
func (p *Page) Observe(name string, rules []core.Rule) core.ObserverFuncs {
	p.mu.Lock()
	l := p.named(name)
	p.mu.Unlock()
	seen := l.configure(rules)
	return core.ObserverFuncs{
		Decided: func(_ context.Context, o core.Observation) {
			if o.Degraded {
				l.counts.Add(degraded)
			}
			if o.Reason > core.ReasonOverLimit || uint(o.Rule) >= uint(len(seen)) {
				if o.Reason == core.ReasonFailed {
					l.counts.Add(failed)
				}
				return // no limit has decided
			}
			switch r := seen[o.Rule]; {
			case o.Reason == core.ReasonWithinLimits:
				n := r.counts.Add(allowed)
				if o.Remaining < o.Capacity-o.Remaining { // more than half is used
					if weight := l.near.weight(n); weight > 0 {
						l.near.Add(r.key(&o), weight, l.now()<<16|used(&o))
					}
				}
			case o.Allowed:
				r.counts.Add(dryRun)
			default:
				if weight := l.denied.weight(r.counts.Add(denied)); weight > 0 {
					l.denied.Add(r.key(&o), weight, l.now())
				}
			}
		},
		Stored: func(_ context.Context, _ string, took time.Duration, err error) { l.store.add(took, err) },
		Keys:   true,
	}
}

// configure makes rules those of the limiter. A rule that stays keeps its counts, and of one
// that goes only the name is kept, for its keys.
func (l *limiter) configure(rules []core.Rule) []*rule {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := make([]*rule, len(rules))
	for i := range rules {
		r := l.known[rules[i].Name]
		if r == nil {
			group, ok := l.order[rules[i].Name]
			if !ok {
				group = len(l.order)
				l.order[rules[i].Name] = group
			}
			r = &rule{name: rules[i].Name, group: group}
		}
		r.limits = r.limits[:0:0]
		for _, limit := range rules[i].Limits {
			r.limits = append(r.limits, limit.String())
		}
		seen[i] = r
	}
	clear(l.known)
	for _, r := range seen {
		l.known[r.name] = r
	}
	l.rules = seen
	return seen
}

// used returns the share of its limit that a key has used, in 16 bits. Remaining must be below
// Capacity.
func used(o *core.Observation) uint64 {
	hi, lo := bits.Mul64(uint64(o.Capacity-o.Remaining), 1<<16-1)
	share, _ := bits.Div64(hi, lo, uint64(o.Capacity))
	return share
}

// key is the key of a decision in the sketches.
func (r *rule) key(o *core.Observation) sketch.Key {
	return sketch.Key{Group: r.group, Key: o.Key, Extra: o.Extra}
}

// now returns the second, as a sketch keeps it.
func (l *limiter) now() uint64 { return uint64(l.second.Load()) }

// pass notes what was counted in the second that has passed. Keys count half as much
// after a minute.
func (l *limiter) pass(second int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.second.Store(second)
	l.denied.pass(second)
	l.near.pass(second)
	l.degraded.pass(second, l.counts.Sum(degraded))
	l.failed.pass(second, l.counts.Sum(failed))
	l.store.pass(second)
	for _, r := range l.rules {
		r.allowed.pass(second, r.counts.Sum(allowed))
		r.denied.pass(second, r.counts.Sum(denied))
		r.dryRun.pass(second, r.counts.Sum(dryRun))
	}
}
