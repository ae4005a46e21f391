package live

import (
	"slices"
	"time"
)

// state is what the browser gets each second.
type state struct {
	Instance string         `json:"instance"`
	Second   int64          `json:"second"`
	ReadOnly bool           `json:"readOnly"`
	Limiters []limiterState `json:"limiters"`
	Logins   []string       `json:"logins"`
}

type limiterState struct {
	Name string `json:"name"`
	// Managed reports that the page can look at keys.
	Managed bool `json:"managed"`
	// Shared reports that other processes may count in the same counters.
	Shared bool        `json:"shared"`
	Store  storeState  `json:"store"`
	Rules  []ruleState `json:"rules"`
	Denied []seenKey   `json:"denied"`
	Near   []seenKey   `json:"near"`
}

// storeState is about the second that has passed.
type storeState struct {
	Asked    uint32  `json:"asked"`
	Failed   uint32  `json:"failed"`
	Degraded uint32  `json:"degraded"`
	Errors   uint32  `json:"errors"` // decisions that failed
	MeanMS   float64 `json:"meanMs"`
	MostMS   float64 `json:"mostMs"`
}

// ruleState has one number for each second, the oldest first: the last two minutes when
// the browser connects, then the second that has passed.
type ruleState struct {
	Name    string   `json:"name"`
	Limits  []string `json:"limits"`
	Allowed []uint32 `json:"allowed"`
	Denied  []uint32 `json:"denied"`
	DryRun  []uint32 `json:"dryRun"`
}

// state returns what the page shows in a second, with the counts of n seconds up to it.
func (p *Page) state(second int64, n int) state {
	p.mu.Lock()
	s := state{Instance: p.config.Instance, Second: second, ReadOnly: p.config.Authorize == nil}
	limiters := slices.Clone(p.limiters)
	for name := range p.logins {
		s.Logins = append(s.Logins, name)
	}
	p.mu.Unlock()
	slices.Sort(s.Logins)
	for _, l := range limiters {
		ls := l.state(second, n)
		if m := l.manages.Load(); m != nil {
			ls.Managed, ls.Shared = true, m.Guarantees().Shared
		}
		ls.Denied, ls.Near = p.deniedMost(l, second), p.nearest(l, second)
		s.Limiters = append(s.Limiters, ls)
	}
	return s
}

// names returns the names of the rules by their group. Ask for them after the keys that
// they are for: another configuration may add groups meanwhile.
func (l *limiter) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := make([]string, len(l.order))
	for name, group := range l.order {
		names[group] = name
	}
	return names
}

func (l *limiter) state(second int64, n int) limiterState {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := second % seconds
	s := limiterState{Name: l.name, Store: storeState{
		Asked: l.store.count.past[at], Failed: l.store.failed.past[at], Degraded: l.degraded.past[at], Errors: l.failed.past[at],
		MeanMS: milliseconds(l.store.mean), MostMS: milliseconds(l.store.most),
	}}
	for _, r := range l.rules {
		s.Rules = append(s.Rules, ruleState{
			Name: r.name, Limits: r.limits,
			Allowed: r.allowed.last(second, n), Denied: r.denied.last(second, n), DryRun: r.dryRun.last(second, n),
		})
	}
	return s
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
