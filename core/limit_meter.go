package core

import (
	"fmt"
	"math"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// known returns whether a is one of the algorithms.
func (a Algorithm) known() bool { return a <= TokenBucket }

// meter returns the algorithm of package meter, whose first ones are those of this package.
func (a Algorithm) meter() meter.Algorithm {
	if !a.known() {
		return math.MaxUint8 // Validate returns an error for it
	}
	return meter.Algorithm(a)
}

// meter returns the limit as package meter counts it.
func (l Limit) meter() meter.Limit {
	m := meter.Limit{
		Algorithm: l.Algorithm.meter(),
		Aligned:   l.Aligned,
		Quota:     l.Quota,
		Capacity:  l.Capacity(),
		Window:    l.Window.Microseconds(),
		Precision: l.Precision.Microseconds(),
	}
	if l.Zone != nil {
		m.Algorithm, m.Zone = meter.Calendar, l.Zone
	}
	if !l.Lockout.none() {
		k := l.Lockout.filled()
		m.Algorithm = meter.Lockout
		m.Waits = meter.Waits{First: k.First.Microseconds(), Longest: k.Max.Microseconds(), Factor: k.Factor, Decay: k.Decay.Microseconds()}
	}
	return m
}

// The stores of this module convert limits too. The result is of no use to other programs, so
// that no exported method returns it.
func init() {
	meter.FromCore = func(limit any) meter.Limit { return limit.(Limit).meter() }
}

// with returns the limit as it is for a request with a quota of its own.
func (l Limit) with(quota int64) Limit {
	if l.Burst > 0 && quota != l.Quota {
		burst := int64(0)
		if quota != Unlimited && quota > 0 && l.Quota > 0 {
			m := meter.New(l.meter())
			with := m.With(quota)
			burst = with.Capacity
		}
		l.Burst = burst
	}
	l.Quota = quota
	return l
}

// capacity returns the most hits that a limit allows an item at once.
func (s *snapshot) capacity(it *Item, limit int) int64 {
	l := &s.rules[it.Rule].Limits[limit]
	if it.Quotas == nil || it.Quotas[limit] == l.Quota {
		return l.Capacity()
	}
	return l.with(it.Quotas[limit]).Capacity()
}

// checkQuotas returns an error for the first of a rule's quotas that is out of range.
func (s *snapshot) checkQuotas(rule int, quotas []int64) error {
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
	return quota == Unlimited || 0 <= quota && quota <= l.maxQuota()
}

// appendQuotas appends the quotas of an item, or those of its limits.
func (s *snapshot) appendQuotas(dst []int64, it *Item) []int64 {
	if it.Quotas != nil {
		return append(dst, it.Quotas...)
	}
	for i := range s.rules[it.Rule].Limits {
		dst = append(dst, s.rules[it.Rule].Limits[i].Quota)
	}
	return dst
}
