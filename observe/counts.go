// Package observe counts what limiters decide, by limiter, rule, limit and result. The packages
// otelobserve and promobserve, which are modules of their own, export these counts to OpenTelemetry
// and Prometheus; slogobserve logs denials. A program that only reads the numbers itself uses
// [Counts] alone:
//
//	counts := observe.NewCounts()
//	limiter, err := core.New(core.Config{Rules: rules, Observer: counts})
//	…
//	for _, l := range counts.Read() {
//		for _, n := range l.Limits {
//			fmt.Println(l.Name, n.Rule, n.Limit, n.Allowed, n.Denied)
//		}
//	}
//
// Counters exist for each limit, never for a key: traffic adds none.
package observe

import (
	"context"
	"sync"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/stripes"
)

// Counts is a [core.Observer] that counts. [NewCounts] makes it. One serves any number
// of limiters; limiters of one name are counted together. Its methods may be called
// concurrently. Counts never fall, and outlive a Reconfigure: a limit that is no longer
// in the configuration keeps its numbers.
type Counts struct {
	mu       sync.Mutex
	limiters []*limiter // in the order in which they were first seen
}

var _ core.Observer = (*Counts)(nil)

// NewCounts returns Counts that are all 0.
func NewCounts() *Counts { return new(Counts) }

// limiter has the counts of one limiter.
type limiter struct {
	name string
	all  *stripes.Numbers // indexed by the constants below

	mu     sync.Mutex
	limits []*limit // in the order in which they were first seen
	events []*event // likewise
	store  []*operation

	queues []*queue
}

// What is counted for a limiter as a whole.
const (
	skipped = iota
	noRule
	badRequest
	failed
	deniedAround // by a checker around the limiter
	degraded
	canceled
)

// limit has the counts of one limit of a rule.
type limit struct {
	rule, name string
	counts     *stripes.Numbers // indexed by the constants below
}

// What is counted for a limit.
const (
	allowed = iota
	denied
	dryRun
	near
)

// Observe implements [core.Observer].
func (c *Counts) Observe(name string, rules []core.Rule) core.ObserverFuncs {
	l := c.limiter(name)
	limits := make([][]*limit, len(rules))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range rules {
		for j := range rules[i].Limits {
			limits[i] = append(limits[i], l.limit(rules[i].Name, rules[i].Limits[j].Name))
		}
		if rules[i].MaxWait > 0 {
			l.queueOf(rules[i].Name)
		}
	}
	return core.ObserverFuncs{
		Decided: func(_ context.Context, d core.Decision, rule, limit int) {
			switch {
			case rule < 0 || d.Reason > core.ReasonOverLimit:
				l.count(d.Reason)
			case d.DryRun:
				limits[rule][limit].counts.Add(dryRun)
			case !d.Allowed:
				limits[rule][limit].counts.Add(denied)
			default:
				b := limits[rule][limit].counts
				if d.Remaining <= d.Limit().Capacity()/nearly {
					b.Add(near)
				}
				b.Add(allowed)
			}
			if d.Degraded {
				l.all.Add(degraded)
			}
			if d.Waited > 0 {
				name := ""
				if rule >= 0 {
					name = rules[rule].Name
				}
				l.waited(name, &d)
			}
		},
		Queued: func(_ context.Context, rule int, change int64) {
			l.queue(rules[rule].Name).waiting.Add(change)
		},
		Stored:   l.stored,
		Reported: l.reported,
	}
}

// nearly is the part of a quota that is left if a limit is near.
const nearly = 10

// count counts a decision that no limit has made.
func (l *limiter) count(why core.Reason) {
	switch why {
	case core.ReasonSkipped:
		l.all.Add(skipped)
	case core.ReasonBadRequest:
		l.all.Add(badRequest)
	case core.ReasonFailed:
		l.all.Add(failed)
	case core.ReasonCanceled:
		l.all.Add(canceled)
	case core.ReasonOverLimit:
		l.all.Add(deniedAround)
	case core.ReasonNoRule, core.ReasonWithinLimits:
		l.all.Add(noRule)
	}
}

// limiter returns the limiter of a name.
func (c *Counts) limiter(name string) *limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.limiters {
		if l.name == name {
			return l
		}
	}
	l := &limiter{name: name, all: new(stripes.Numbers)}
	c.limiters = append(c.limiters, l)
	return l
}

// limit returns the limit of a rule. The caller holds the lock.
func (l *limiter) limit(rule, name string) *limit {
	for _, m := range l.limits {
		if m.rule == rule && m.name == name {
			return m
		}
	}
	m := &limit{rule, name, new(stripes.Numbers)}
	l.limits = append(l.limits, m)
	return m
}
