package live

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
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
	denied  *sketch.Sketch
	near    *sketch.Sketch
	second  atomic.Int64 // of the page
	counts  counts       // indexed by the constants below
	times   times        // of the store's operations in this second

	mu    sync.Mutex
	rules []*rule       // of the configuration in force
	p99   time.Duration // of the store's operations in the second that has passed
}

// What is counted for a limiter as a whole.
const (
	degraded = iota
	failed
	asked       // operations of the store
	storeFailed // those that failed
)

// rule is what the page knows of a rule.
type rule struct {
	name   string
	limits []string
	counts counts // indexed by the constants below
}

// What is counted for a rule.
const (
	allowed = iota
	denied
	dryRun
)

func newLimiter(name string, second int64) *limiter {
	l := &limiter{name: name, denied: sketch.New(deniedKeys), near: sketch.New(nearKeys)}
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
		Decided: func(_ context.Context, d core.Decision, rule, _ int) {
			if d.Degraded {
				l.counts.Add(degraded)
			}
			if d.Reason > core.ReasonOverLimit || rule < 0 {
				if d.Reason == core.ReasonFailed {
					l.counts.Add(failed)
				}
				return // no limit has decided
			}
			r, hit := seen[rule], d.Hit()
			key := sketch.Key{Rule: r.name, Key: hit.Key, Extra: hit.Extra}
			switch {
			case d.Reason == core.ReasonWithinLimits:
				r.counts.Add(allowed)
				if capacity := d.Limit().Capacity(); d.Remaining < capacity-d.Remaining { // more than half is used
					l.near.Add(key, sketch.Note{Second: l.second.Load(), Used: capacity - d.Remaining, Capacity: capacity})
				}
			case d.Allowed:
				r.counts.Add(dryRun)
			default:
				r.counts.Add(denied)
				l.denied.Add(key, sketch.Note{Second: l.second.Load()})
			}
		},
		Stored: func(_ context.Context, _ string, took time.Duration, err error) {
			l.counts.Add(asked)
			l.times.add(took)
			if err != nil {
				l.counts.Add(storeFailed)
			}
		},
	}
}

// configure makes rules those of the limiter. A rule that stays keeps its counts.
func (l *limiter) configure(rules []core.Rule) []*rule {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := map[string]*rule{}
	for _, r := range l.rules {
		known[r.name] = r
	}
	seen := make([]*rule, len(rules))
	for i := range rules {
		r := known[rules[i].Name]
		if r == nil {
			r = &rule{name: rules[i].Name}
		}
		r.limits = make([]string, 0, len(rules[i].Limits))
		for _, limit := range rules[i].Limits {
			r.limits = append(r.limits, limit.String())
		}
		seen[i] = r
	}
	l.rules = seen
	return seen
}

// pass notes what was counted in the second that has passed. Keys count half as much
// after a minute.
func (l *limiter) pass(second int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.second.Store(second)
	if second%60 == 0 {
		l.denied.Halve()
		l.near.Halve()
	}
	l.counts.pass(second)
	l.p99 = l.times.p99()
	for _, r := range l.rules {
		r.counts.pass(second)
	}
}
