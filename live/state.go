package live

import (
	"maps"
	"slices"
)

// state is what the browser gets each second.
type state struct {
	Instance string         `json:"instance"`
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
	P99MS    float64 `json:"p99Ms"`  // of the operations
}

// ruleState has one number for each of the last two minutes' seconds, the oldest first.
type ruleState struct {
	Name    string   `json:"name"`
	Limits  []string `json:"limits"`
	Allowed []uint32 `json:"allowed"`
	Denied  []uint32 `json:"denied"`
	DryRun  []uint32 `json:"dryRun"`
}

// state returns what the page shows in a second. Limiters and logins are sorted by name.
func (p *Page) state(second int64) state {
	p.mu.Lock()
	s := state{Instance: p.config.Instance, ReadOnly: p.config.Authorize == nil, Logins: slices.Sorted(maps.Keys(p.logins))}
	var limiters []*limiter
	for _, name := range slices.Sorted(maps.Keys(p.limiters)) {
		limiters = append(limiters, p.limiters[name])
	}
	p.mu.Unlock()
	for _, l := range limiters {
		ls := l.state(second)
		if m := l.manages.Load(); m != nil {
			ls.Managed, ls.Shared = true, m.Guarantees().Shared
		}
		ls.Denied, ls.Near = p.deniedMost(l, second), p.nearest(l, second)
		s.Limiters = append(s.Limiters, ls)
	}
	return s
}

func (l *limiter) state(second int64) limiterState {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := func(i int) uint32 { return l.counts.past[i].past[second%seconds] }
	s := limiterState{
		Name:  l.name,
		Store: storeState{Asked: last(asked), Failed: last(storeFailed), Degraded: last(degraded), Errors: last(failed), P99MS: float64(l.p99.Microseconds()) / 1000},
		Rules: []ruleState{}, // the page's script needs a list
	}
	for _, r := range l.rules {
		past := &r.counts.past
		s.Rules = append(s.Rules, ruleState{
			Name: r.name, Limits: r.limits,
			Allowed: past[allowed].all(second), Denied: past[denied].all(second), DryRun: past[dryRun].all(second),
		})
	}
	return s
}
