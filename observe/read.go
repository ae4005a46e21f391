package observe

import "github.com/floodgate-go/floodgate/core"

// LimiterCounts are the numbers of one limiter. A decision counts once: in Skipped, NoRule,
// BadRequests, Failed, Canceled or Denied, or in Allowed, Denied or DryRun of one of the Limits.
type LimiterCounts struct {
	// Name is the limiter's name.
	Name string
	// Limits are the limits of this and of earlier configurations, in the order in which they were
	// first seen.
	Limits []LimitCounts
	// Skipped is how many requests Hooks.ShouldLimit exempted, and NoRule how many no rule applied
	// to. They were allowed.
	Skipped, NoRule uint64
	// BadRequests is how many requests had a mistake: see core.ErrBadRequest. Failed is for how
	// many a store, key function or hook failed. They were denied, unless in a dry run.
	BadRequests, Failed uint64
	// Canceled is how many requests were denied because the client had gone before the decision.
	Canceled uint64
	// Denied is how many requests a checker around the limiter denied, such as
	// login.Config.OnSuspicion, without a limit.
	Denied uint64
	// Degraded is how many of these decisions were made without the shared counters.
	Degraded uint64
	// Store are the operations of the store; none if the store is a core.Memory.
	Store []StoreCounts
	// Queues are the rules whose requests may wait, or have waited, in the order in which they were
	// first seen.
	Queues []QueueCounts
	// Events are the reports of a checker around the limiter. Only the first 16 names are counted
	// apart; the rest are "other".
	Events []EventCount
}

// LimitCounts are the numbers of the decisions of one limit: see core.Decision.Limit.
type LimitCounts struct {
	// Rule and Limit are the names of the rule and its limit.
	Rule, Limit string
	// Allowed, Denied and DryRun are how many requests were within the limit, over it, and over it
	// in a dry run (core.Config.DryRun).
	Allowed, Denied, DryRun uint64
	// Near is how many of the allowed requests left a tenth of the quota, rounded down, or less.
	Near uint64
}

// StoreCounts are the numbers of one operation of a store.
type StoreCounts struct {
	// Operation is the operation's name: that of its core.Op.
	Operation string
	// Errors is how many operations ended with an error.
	Errors uint64
	Durations
}

// EventCount is how often a checker has reported an event.
type EventCount struct {
	Event string
	Count uint64
}

// Read returns the numbers of all limiters, in the order in which they were made. It reads while
// others count: numbers of one moment may differ by the decisions that are under way.
func (c *Counts) Read() []LimiterCounts {
	c.mu.Lock()
	limiters := c.limiters[:len(c.limiters):len(c.limiters)]
	c.mu.Unlock()
	all := make([]LimiterCounts, len(limiters))
	for i, l := range limiters {
		all[i] = l.read()
	}
	return all
}

func (l *limiter) read() LimiterCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := func(why core.Reason) uint64 { return l.all.Sum(int(why)) }
	n := LimiterCounts{
		Name: l.name, Skipped: sum(core.ReasonSkipped), NoRule: sum(core.ReasonNoRule),
		BadRequests: sum(core.ReasonBadRequest), Failed: sum(core.ReasonFailed), Canceled: sum(core.ReasonCanceled),
		Denied: sum(core.ReasonOverLimit), Degraded: l.all.Sum(degraded),
	}
	for _, m := range l.limits {
		n.Limits = append(n.Limits, LimitCounts{
			Rule: m.rule, Limit: m.name, Allowed: m.counts.Sum(allowed),
			Denied: m.counts.Sum(denied), DryRun: m.counts.Sum(dryRun), Near: m.counts.Sum(near),
		})
	}
	for _, op := range l.store {
		n.Store = append(n.Store, StoreCounts{op.name, op.errors.Load(), op.took.read()})
	}
	for _, q := range l.queues {
		n.Queues = append(n.Queues, q.read())
	}
	for _, e := range l.events {
		n.Events = append(n.Events, EventCount{e.name, e.count.Load()})
	}
	return n
}
