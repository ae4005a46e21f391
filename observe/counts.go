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
	"slices"
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
	all  *stripes.Numbers // by core.Reason, of the decisions that no limit has made; and degraded

	mu     sync.Mutex // of the lists, each in the order in which its elements were first seen
	limits []*limit
	events []*event
	store  []*operation
	queues []*queue
}

// degraded is the index of the degraded decisions: no core.Reason is as large.
const degraded = 7

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
	for i := range rules {
		for j := range rules[i].Limits {
			limits[i] = append(limits[i], l.limit(rules[i].Name, rules[i].Limits[j].Name))
		}
		if rules[i].MaxWait > 0 {
			l.queue(rules[i].Name)
		}
	}
	return core.ObserverFuncs{
		Decided: func(_ context.Context, d core.Decision, rule, limit int) {
			switch {
			case rule < 0 || d.Reason > core.ReasonOverLimit:
				l.all.Add(int(d.Reason))
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

// nearly is 10: a limit is near if a tenth of its quota, or less, is left.
const nearly = 10

// limiter returns the limiter of a name.
func (c *Counts) limiter(name string) *limiter {
	return find(&c.mu, &c.limiters, func(l *limiter) bool { return l.name == name }, func() *limiter {
		return &limiter{name: name, all: new(stripes.Numbers)}
	})
}

// limit returns the limit of a rule.
func (l *limiter) limit(rule, name string) *limit {
	return find(&l.mu, &l.limits, func(m *limit) bool { return m.rule == rule && m.name == name }, func() *limit {
		return &limit{rule, name, new(stripes.Numbers)}
	})
}

// find returns the element of a list for which is returns true. If there is none, it appends
// the one that add returns.
func find[T any](mu *sync.Mutex, list *[]*T, is func(*T) bool, add func() *T) *T {
	mu.Lock()
	defer mu.Unlock()
	i := slices.IndexFunc(*list, is)
	if i < 0 {
		i, *list = len(*list), append(*list, add())
	}
	return (*list)[i]
}
