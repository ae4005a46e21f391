package core

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// appendDraft10 appends the two lines of HeadersDraft10, if the limits have them. wait is
// the value of Retry-After in the same memory, "" if there is none or the lines are not
// appended.
func (d *Decision) appendDraft10(dst []Header) (lines []Header, wait string) {
	n := d.statuses()
	if n == 0 {
		return dst, ""
	}
	rule, _ := d.limitAt(0)
	if !d.detail.snap.mixed && !rule.draft10() {
		return dst, ""
	}
	policy := d.policyField(n)
	rate, wait := d.rateField(n)
	if rate == "" {
		return dst, ""
	}
	return append(dst, Header{"Ratelimit-Policy", policy}, Header{"Ratelimit", rate}), wait
}

// draft10 returns whether the rule's limits are in the fields of HeadersDraft10.
func (r *compiledRule) draft10() bool { return r.Headers.twin() == HeadersDraft10 }

// policyField returns the RateLimit-Policy field of all limits.
func (s *snapshot) policyField() string {
	var b []byte
	for i := range s.rules {
		for j := range s.rules[i].Limits {
			b = appendPolicy(b, &s.rules[i].Limits[j])
		}
	}
	return string(b)
}

// policyField returns the field for the limits that applied.
func (d *Decision) policyField(n int) string {
	if !d.ownQuotas() && d.eachRuleOnce() {
		return d.detail.snap.policy
	}
	var b []byte
	var named []string
	for i := range n {
		rule, _ := d.limitAt(i)
		l := d.appliedLimit(i)
		if rule.draft10() && l.Quota != Unlimited && !slices.Contains(named, l.Name) { // several keys of a rule have one policy
			b = appendPolicy(b, l)
			named = append(named, l.Name)
		}
	}
	return string(b)
}

// eachRuleOnce returns whether every rule applied with one key, and
// all of them have the same headers.
func (d *Decision) eachRuleOnce() bool {
	rules := len(d.detail.snap.rules)
	r := d.record
	switch {
	case d.detail.snap.mixed:
		return false
	case r == nil:
		return rules == 1
	case len(r.items) != rules || rules > 64:
		return false
	}
	seen := uint64(0)
	for _, it := range r.items {
		seen |= 1 << it.rule
	}
	return bits.OnesCount64(seen) == rules
}

func appendPolicy(b []byte, l *Limit) []byte {
	b = appendItem(b, l.Name)
	b = append(b, ";q="...)
	b = strconv.AppendInt(b, l.policyQuota(), 10)
	if w := l.policyWindow(); w > 0 { // w is a whole number above 0, or absent
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, w, 10)
	}
	return b
}

// policyQuota returns the number of hits that fit into policyWindow.
func (l *Limit) policyQuota() int64 {
	if l.Quota == 0 { // a Burst changes nothing
		return 0
	}
	return l.Capacity()
}

// policyWindow returns the number of seconds in which the limit's capacity comes
// back, 0 if it is no whole number: the window, or Window × Burst / Quota of a
// token bucket.
func (l *Limit) policyWindow() int64 {
	if l.Algorithm == Leases { // a slot comes back when a request ends
		return 0
	}
	micros := l.Window.Microseconds()
	if l.Algorithm == TokenBucket && l.Quota > 0 {
		q, r := meter.MulDiv(micros, l.Capacity(), l.Quota)
		if r != 0 {
			return 0
		}
		micros = q
	}
	if micros%time.Second.Microseconds() != 0 {
		return 0
	}
	return min(micros/time.Second.Microseconds(), maxField)
}

func appendItem(b []byte, name string) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"')
}

// rateField returns the RateLimit field, and the value of Retry-After if the response has
// one: both in one allocation.
func (d *Decision) rateField(n int) (rate, wait string) {
	var buf [128]byte
	b := buf[:0]
	for i := range n {
		if rule, _ := d.limitAt(i); rule.draft10() {
			b = d.appendRate(b, i)
		}
	}
	end := len(b)
	if end == 0 || !d.waits() {
		return string(b), ""
	}
	if d.record == nil && d.Exceeded { // t is the same number, at the end of the only item
		rate = string(b)
		return rate, rate[strings.LastIndexByte(rate, '=')+1:]
	}
	b = strconv.AppendInt(b, retrySeconds(d.RetryAfter), 10)
	text := string(b)
	return text[:end], text[end:]
}

func (d *Decision) appendRate(b []byte, i int) []byte {
	s := &d.LimitStatus
	if d.record != nil {
		other := d.statusAt(i)
		s = &other
	}
	if s.Limit.Quota == Unlimited {
		return b
	}
	b = appendItem(b, s.Limit.Name)
	b = append(b, ";r="...)
	b = strconv.AppendInt(b, s.Remaining, 10)
	if s.Limit.Algorithm == Leases && !s.Exceeded { // nobody knows when there is more
		return b
	}
	b = append(b, ";t="...)
	t := seconds(s.MoreAfter)
	if s.Exceeded && s.RetryAfter != Never {
		t = retrySeconds(s.RetryAfter)
	}
	return strconv.AppendInt(b, min(t, maxField), 10)
}
