package core

import (
	"context"
	"errors"
	"iter"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// decide writes into d, which is zero, what the store has filled in.
func (c *session) decide(d *Decision) {
	d.Limiter, d.Cost, d.Degraded = c.snap.name, c.cost, c.batch.Degraded
	d.detail.snap = c.snap
	switch {
	case len(c.items) == 0:
		d.Allowed, d.Reason = true, ReasonNoRule
		return
	case c.batch.Allowed:
		d.Allowed, d.Reason = true, ReasonWithinLimits
	default:
		d.Reason = ReasonOverLimit
	}
	limit := 0
	if c.decides = 0; len(c.results) > 1 {
		c.decides, limit = c.deciding()
	}
	item := &c.items[c.decides]
	d.Cost, d.marks.limit = item.Cost, uint8(limit)
	d.LimitStatus.set(&c.snap.rules[item.Rule], limit, &item.Results[limit], item.quota(limit))
}

// deciding returns the index of the item, and of its limit, that a decision
// names: of the limits that deny, the one with the longest wait; if none
// denies, the one with the smallest share remaining. The first of equals.
func (c *session) deciding() (item, limit int) {
	for i := range c.items {
		for j := range c.items[i].Results {
			if (i > 0 || j > 0) && c.before(&c.items[i], j, &c.items[item], limit) {
				item, limit = i, j
			}
		}
	}
	return item, limit
}

// before returns whether limit i of a decides rather than limit j of b. A limit
// that the store has not looked at never decides.
func (c *session) before(a *Item, i int, b *Item, j int) bool {
	if a.Unknown || b.Unknown {
		return !a.Unknown
	}
	x, y := &a.Results[i], &b.Results[j]
	if x.Allowed != y.Allowed {
		return !x.Allowed
	}
	if !x.Allowed {
		return x.RetryAfter > y.RetryAfter
	}
	if p, q := a.quota(i) == Unlimited, b.quota(j) == Unlimited; p || q {
		return !p
	}
	// x.Remaining / its capacity < y.Remaining / its capacity, in whole numbers.
	return x.Remaining*c.snap.capacity(b, j) < y.Remaining*c.snap.capacity(a, i)
}

// set fills in the status of a limit. quota is as package meter takes it.
func (s *LimitStatus) set(rule *compiledRule, limit int, r *Result, quota int64) {
	s.Rule = rule.Name
	s.Limit = rule.Limits[limit]
	s.Remaining, s.ResetAfter, s.MoreAfter, s.RetryAfter = r.Remaining, r.ResetAfter, r.MoreAfter, r.RetryAfter
	s.Exceeded = !r.Allowed
	if quota != meter.Own {
		s.Limit.setQuota(quota)
		if quota == Unlimited {
			s.Remaining, s.MoreAfter = Unlimited, 0
		}
	}
}

// fail writes into d that err came in between.
func (c *session) fail(ctx context.Context, d *Decision, err error) {
	reason := ReasonFailed
	if canceled(ctx, err) {
		reason = ReasonCanceled
	}
	*d = Decision{Reason: reason, Limiter: c.snap.name, Cost: c.cost, Err: err}
	d.detail.snap = c.snap
}

// canceled reports whether an error says no more than that the client has gone.
func canceled(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.Canceled) && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)))
}

// Limits yields the state of every limit that applied, in the order
// of the rules and their limits.
func (d Decision) Limits() iter.Seq[LimitStatus] {
	return func(yield func(LimitStatus) bool) {
		for i := range d.statuses() {
			if !yield(d.statusAt(i)) {
				return
			}
		}
	}
}

// statuses returns how many limits applied.
func (d *Decision) statuses() int {
	switch {
	case d.record != nil:
		return len(d.record.results)
	case d.Rule != "":
		return 1
	default:
		return 0
	}
}

func (d *Decision) statusAt(i int) (s LimitStatus) {
	r := d.record
	if r == nil {
		return d.LimitStatus
	}
	rule, limit := d.limitAt(i)
	s.set(rule, limit, &r.results[i], r.quota(i))
	return s
}

// limitAt returns the rule of the limit that statusAt is about, and its index
// in the rule.
func (d *Decision) limitAt(i int) (rule *compiledRule, limit int) {
	rules := d.detail.snap.rules
	if d.record == nil {
		return &rules[d.rule], i
	}
	for _, it := range d.record.items {
		rule = &rules[it.rule]
		if i < len(rule.Limits) {
			break
		}
		i -= len(rule.Limits)
	}
	return rule, i
}

// Key returns the key of the deciding limit, as the rule's key function made it
// or a [Hit] brought it, without what Hooks.KeyExtra added. It is "" if no rule
// applied. It may hold what a client sent, such as a username: String,
// StoredKey and the logs of this package never show it.
func (d Decision) Key() string {
	if d.Rule == "" {
		return ""
	}
	key, _ := d.decidingKey()
	return key
}
