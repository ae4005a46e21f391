package live

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live/internal/sketch"
)

const (
	refusedKeys = 2048
	nearKeys    = 1024
	seconds     = 120 // of history
	// noted is how many decisions of a limiter near a limit are noted in a second; of
	// those above it, one in 16 is.
	noted = 1000
)

// limiter is what the page knows of a limiter.
type limiter struct {
	name    string
	manages atomic.Pointer[core.Limiter]
	refused *sketch.Sketch
	near    *sketch.Sketch
	second  atomic.Int64 // of the page
	notes   atomic.Uint64

	degraded, failed counter
	store            timing

	mu    sync.Mutex
	rules []*rule // of the configuration in force
	known map[string]*rule
	order map[string]int // the group of each rule in the sketches
}

// rule is what the page knows of a rule.
type rule struct {
	name   string
	group  int
	shadow bool
	limits []string

	allowed, refused, rehearsed counter
}

// counter counts, and remembers the last seconds.
type counter struct {
	n    atomic.Uint64
	then uint64 // n when the last second had passed
	past [seconds]uint32
}

func newLimiter(name string, second int64) *limiter {
	l := &limiter{name: name, refused: sketch.New(refusedKeys), near: sketch.New(nearKeys), known: map[string]*rule{}, order: map[string]int{}}
	l.second.Store(second)
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
			if o.Reason != core.ReasonWithinLimits || uint(o.Rule) >= uint(len(seen)) {
				l.denied(seen, &o)
				return
			}
			// The usual case: it has nothing to spare.
			r := seen[o.Rule]
			r.allowed.n.Add(1)
			if !r.shadow && o.Remaining < o.Capacity-o.Remaining { // more than half is used
				l.nearing(r, &o)
			}
			if o.Degraded {
				l.degraded.n.Add(1)
			}
		},
		Stored:   func(_ context.Context, _ string, took time.Duration, err error) { l.stored(took, err) },
		Reported: nil,
		Keys:     true,
	}
}

// configure makes rules those of the limiter. A rule that was known keeps its counts.
func (l *limiter) configure(rules []core.Rule) []*rule {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := make([]*rule, len(rules))
	for i := range rules {
		r := l.known[rules[i].Name]
		if r == nil || r.shadow != rules[i].Shadow {
			group, ok := l.order[rules[i].Name]
			if !ok {
				group = len(l.order)
				l.order[rules[i].Name] = group
			}
			r = &rule{name: rules[i].Name, group: group, shadow: rules[i].Shadow}
			l.known[r.name] = r
		}
		r.limits = r.limits[:0:0]
		for _, limit := range rules[i].Limits {
			r.limits = append(r.limits, limit.String())
		}
		seen[i] = r
	}
	l.rules = seen
	return seen
}

// denied counts a decision that no limit has admitted.
func (l *limiter) denied(rules []*rule, o *core.Observation) {
	if o.Degraded {
		l.degraded.n.Add(1)
	}
	if o.Reason == core.ReasonFailed {
		l.failed.n.Add(1)
	}
	if o.Reason != core.ReasonOverLimit || o.Rule < 0 || o.Rule >= len(rules) {
		return
	}
	r := rules[o.Rule]
	if o.Allowed || o.Shadow {
		r.rehearsed.n.Add(1)
		return
	}
	r.refused.n.Add(1)
	l.refused.Add(sketch.Key{Group: r.group, Key: o.Key, Extra: o.Extra}, uint64(l.second.Load()))
}

// nearing notes how much of its limit a key has used.
func (l *limiter) nearing(r *rule, o *core.Observation) {
	if n := l.notes.Add(1); n > noted && n%16 != 0 {
		return
	}
	// Remaining is below Capacity, so that the share fits into 16 bits.
	hi, lo := bits.Mul64(uint64(o.Capacity-o.Remaining), 1<<16-1)
	share, _ := bits.Div64(hi, lo, uint64(o.Capacity))
	l.near.Add(sketch.Key{Group: r.group, Key: o.Key, Extra: o.Extra}, uint64(l.second.Load())<<16|share)
}

// stored counts an operation of the store.
func (l *limiter) stored(took time.Duration, err error) {
	l.store.add(took)
	if err != nil {
		l.store.failed.n.Add(1)
	}
}

// pass notes what was counted in the second that has passed. Keys count half as much
// after a minute.
func (l *limiter) pass(second int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.second.Store(second)
	l.notes.Store(0)
	if second%60 == 0 {
		l.refused.Halve()
		l.near.Halve()
	}
	l.degraded.pass(second)
	l.failed.pass(second)
	l.store.pass(second)
	for _, r := range l.known {
		r.allowed.pass(second)
		r.refused.pass(second)
		r.rehearsed.pass(second)
	}
}

func (c *counter) pass(second int64) {
	n := c.n.Load()
	c.past[second%seconds] = uint32(min(n-c.then, 1<<32-1))
	c.then = n
}

// timing is how long a store takes.
type timing struct {
	count, failed counter
	sum           atomic.Int64 // nanoseconds
	longest       atomic.Int64
	mean, most    time.Duration // of the second that has passed
	before        int64
}

func (t *timing) add(took time.Duration) {
	t.count.n.Add(1)
	t.sum.Add(int64(took))
	for {
		most := t.longest.Load()
		if int64(took) <= most || t.longest.CompareAndSwap(most, int64(took)) {
			return
		}
	}
}

func (t *timing) pass(second int64) {
	sum := t.sum.Load()
	t.count.pass(second)
	t.failed.pass(second)
	t.mean, t.most = 0, time.Duration(t.longest.Swap(0))
	if n := t.count.past[second%seconds]; n > 0 {
		t.mean = time.Duration((sum - t.before) / int64(n))
	}
	t.before = sum
}
