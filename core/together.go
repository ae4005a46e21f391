package core

// Together makes one decision of those that several limiters have made of one
// request. It is the first that is not Allowed, or, of those that are over a
// limit, the one with the longest wait; where all are allowed, it is the one
// with the smallest share of its quota left, and, without any limit, the first.
// Its response headers list the limits of all that list theirs. Refund and
// Settle take the single decisions. Of none it is the zero Decision.
func Together(ds ...Decision) Decision {
	if len(ds) == 0 {
		return Decision{}
	}
	best := 0
	for i := 1; i < len(ds); i++ {
		if ds[i].before(&ds[best]) {
			best = i
		}
	}
	d := ds[best]
	if len(ds) == 1 {
		return d
	}
	d.detail.others = nil
	for i := range ds {
		if i != best && ds[i].detail.snap != nil {
			d.detail.others = append(d.detail.others, ds[i])
		}
	}
	return d
}

// before says that d rather than o, which comes first, stands for both.
func (d *Decision) before(o *Decision) bool {
	switch {
	case d.Allowed != o.Allowed:
		return !d.Allowed
	case !d.Allowed:
		return d.Reason == OverLimit && o.Reason == OverLimit && d.RetryAfter > o.RetryAfter
	case d.statuses() == 0 || o.statuses() == 0:
		return d.statuses() > 0
	default:
		return d.Remaining*o.Limit.capacity() < o.Remaining*d.Limit.capacity()
	}
}
