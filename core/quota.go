package core

import (
	"errors"
	"fmt"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// with returns the limit as it is for a request with a quota of its own.
func (l Limit) with(quota int64) Limit {
	l.setQuota(quota)
	return l
}

func (l *Limit) setQuota(quota int64) {
	if l.Burst > 0 && quota != l.Quota {
		burst := int64(0)
		if quota != Unlimited && quota > 0 && l.Quota > 0 {
			m := newMeter(*l)
			with := m.With(quota)
			burst = with.Capacity()
		}
		l.Burst = burst
	}
	l.Quota = quota
}

// capacity returns the most hits that a limit allows an item at once.
func (s *snapshot) capacity(it *Item, limit int) int64 {
	l := &s.rules[it.Rule].Limits[limit]
	if it.Quotas == nil || it.Quotas[limit] == l.Quota {
		return l.Capacity()
	}
	return l.with(it.Quotas[limit]).Capacity()
}

// checkQuotas returns an error that names the first of a rule's quotas that
// cannot be.
func (s *snapshot) checkQuotas(rule int, quotas []int64) error {
	if quotas == nil {
		return nil
	}
	r := &s.rules[rule]
	if len(quotas) != len(r.Limits) {
		return fmt.Errorf("%w: limiter %q, rule %q: Quotas: %d of them: want one for each of the rule's %d limits, or nil", ErrConfig, s.name, r.Name, len(quotas), len(r.Limits))
	}
	for i, q := range quotas {
		if err := checkQuota(&r.Limits[i], q); err != nil {
			return fmt.Errorf("%w: limiter %q, rule %q: Quotas[%d]: %w", ErrConfig, s.name, r.Name, i, err)
		}
	}
	return nil
}

func checkQuota(l *Limit, quota int64) error {
	if l.canHave(quota) {
		return nil
	}
	return fmt.Errorf("%d: must be from 0 to %d for %s, or core.Unlimited", quota, l.maxQuota(), l.Algorithm)
}

func (l *Limit) canHave(quota int64) bool {
	return quota == Unlimited || quota >= 0 && (quota <= MaxLogQuota || quota <= MaxQuota && l.Algorithm != SlidingLog && l.Algorithm != Leases)
}

// addQuotas gives quotas to the last item, nil for the limits' own.
func (c *session) addQuotas(quotas []int64) {
	if quotas != nil {
		c.spans[len(c.spans)-1].quotas = len(c.quotas) + 1
		c.quotas = append(c.quotas, quotas...)
	}
}

// askQuotas asks for the quotas of the request for the last item.
func (a *asking) askQuotas(r Request, rule int) error {
	c := &a.snap.rules[rule]
	if c.Quota == nil {
		return nil
	}
	from := len(a.quotas)
	for i := range c.Limits {
		q, err := a.askQuota(r, rule, i)
		if err != nil {
			a.quotas = a.quotas[:from] // if the request is at fault, it counts all the same
			return err
		}
		a.quotas = append(a.quotas, q)
	}
	a.spans[len(a.spans)-1].quotas = from + 1
	return nil
}

// askQuota asks for the quota of the request for a limit.
func (a *asking) askQuota(r Request, rule, limit int) (quota int64, err error) {
	c := &a.snap.rules[rule]
	l := &c.Limits[limit]
	quota, err = c.Quota(r, *l)
	if err == nil {
		if l.canHave(quota) {
			return quota, nil
		}
		err = checkQuota(l, quota)
		err = fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if errors.Is(err, SkipRule) {
		err = fmt.Errorf("a quota function cannot leave out the rule: return core.Unlimited, or SkipRule from the rule's Key: %w", err)
	}
	a.quotaFailed = !errors.Is(err, ErrBadRequest)
	return 0, fmt.Errorf("quota of rule %q, limit %q: %w", c.Name, l.Name, err)
}

// appendQuotas appends the quotas of an item that are not the limits' own.
func (s *snapshot) appendQuotas(dst []int64, it *Item) []int64 {
	if it.Quotas != nil {
		return append(dst, it.Quotas...)
	}
	for i := range s.rules[it.Rule].Limits {
		dst = append(dst, s.rules[it.Rule].Limits[i].Quota)
	}
	return dst
}

// ownQuotas reports whether the decision was made with quotas that are not the limits' own.
func (d *Decision) ownQuotas() bool {
	if r := d.record; r != nil {
		return r.quotas != nil
	}
	return d.Limit.Quota != d.detail.snap.rules[d.rule].Limits[0].Quota
}

// appliedLimit returns the limit that statusAt is about, with the quota of the decision.
func (d *Decision) appliedLimit(i int) *Limit {
	if d.record == nil {
		return &d.Limit
	}
	rule, limit := d.limitAt(i)
	if d.record.quotas == nil {
		return &rule.Limits[limit]
	}
	l := rule.Limits[limit].with(d.record.quotas[i])
	return &l
}

// quota returns the quota of a recorded limit as package meter takes it.
func (r *record) quota(i int) int64 {
	if r.quotas == nil {
		return meter.Own
	}
	return r.quotas[i]
}
