package core

// Hit returns the counter that the decision names: the deciding limit's rule, its
// key, what Hooks.KeyExtra added, and the quotas of the decision, if they are not the
// limits' own. With it an operator can look at that counter or forget it, by
// [Limiter.Peek], [Limiter.Reset] or [Limiter.Block]. It is the zero value if no rule
// applied. As [Decision.Key], it may hold what a client sent.
func (d Decision) Hit() Hit {
	if d.Rule == "" || d.detail.snap == nil {
		return Hit{}
	}
	h := Hit{Rule: d.Rule}
	h.Key, h.Extra = d.decidingKey()
	if d.ownQuotas() {
		h.Quotas = d.decidingQuotas()
	}
	return h
}

// decidingQuotas returns the quotas with which the deciding rule's limits have decided.
func (d *Decision) decidingQuotas() []int64 {
	r := d.record
	if r == nil {
		return []int64{d.Limit.Quota}
	}
	rules, from := d.detail.snap.rules, 0
	for _, it := range r.items[:r.decides] {
		from += len(rules[it.rule].Limits)
	}
	return append([]int64(nil), r.quotas[from:from+len(rules[r.items[r.decides].rule].Limits)]...)
}
