package core

import (
	"slices"
	"strconv"
)

// appendDraft07 appends the two lines of HeadersDraft07. A limit must have applied.
func (d *Decision) appendDraft07(dst []Header) []Header {
	if policy := d.policy07(); policy != "" {
		dst = append(dst, Header{"Ratelimit-Policy", policy})
	}
	reset := seconds(d.ResetAfter)
	if d.Exceeded && d.RetryAfter != Never {
		reset = retrySeconds(d.RetryAfter)
	}
	var buf [64]byte
	b := append(buf[:0], "limit="...)
	b = strconv.AppendInt(b, d.Limit.policyQuota(), 10)
	b = append(b, ", remaining="...)
	b = strconv.AppendInt(b, d.Remaining, 10)
	b = append(b, ", reset="...)
	b = strconv.AppendInt(b, min(reset, maxField), 10)
	return append(dst, Header{"Ratelimit", string(b)})
}

// policy07 returns the RateLimit-Policy field, "" if it has no item. A reader
// finds the deciding limit's window by the number of its hits, so that no other
// limit may take the item of that number.
func (d *Decision) policy07() string {
	type item struct{ quota, window int64 }
	deciding := item{d.Limit.policyQuota(), d.Limit.policyWindow()}
	var items []item
	for i := range d.statuses() {
		rule, _ := d.limitAt(i)
		l := d.appliedLimit(i)
		if rule.Headers&HeadersDraft07 == 0 || l.Quota == Unlimited {
			continue
		}
		it := item{l.policyQuota(), l.policyWindow()}
		if it.quota == deciding.quota {
			it = deciding
		}
		taken := slices.ContainsFunc(items, func(o item) bool { return o.quota == it.quota })
		if it.window > 0 && !taken {
			items = append(items, it)
		}
	}
	var b []byte
	for _, it := range items {
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, it.quota, 10)
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, it.window, 10)
	}
	return string(b)
}
