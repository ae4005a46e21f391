package core

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"time"
)

// Headers chooses the rate limit headers that responses carry, allowed and
// refused alike: the zero value, one of the others, or several joined with |.
type Headers uint8

const (
	// HeadersDraft10 are RateLimit-Policy and RateLimit, structured fields as
	// in draft-ietf-httpapi-ratelimit-headers-10, with one item for each limit.
	// The zero value means the same.
	//
	// q is the limit's Quota and w its Window in seconds. Of a TokenBucket, q
	// is the Burst and w the time in which an empty bucket fills, so that q for
	// each w is the rate that the limit sustains. w is left out if it is no
	// whole number of seconds. r is the number of hits that remain, and t the
	// number of seconds, rounded up, until there are more: of a limit that
	// denies the request, until the limit would allow it, as in Retry-After;
	// 0 if no quota is missing.
	HeadersDraft10 Headers = 1 << iota
	// HeadersDraft03 are RateLimit-Limit, RateLimit-Remaining and
	// RateLimit-Reset of the deciding limit, as in the older drafts up to -06.
	// The reset is the number of seconds until the whole quota is available.
	HeadersDraft03
	// HeadersXSeconds are X-RateLimit-Limit, X-RateLimit-Remaining and
	// X-RateLimit-Reset of the deciding limit. The reset is the number of
	// seconds until the whole quota is available.
	HeadersXSeconds
	// HeadersXMillis are the same with the reset in milliseconds from now.
	HeadersXMillis
	// HeadersXEpoch are the same with the reset as Unix time in seconds.
	HeadersXEpoch
	// HeadersOff means none; it cannot be joined with others.
	HeadersOff
)

const headersX = HeadersXSeconds | HeadersXMillis | HeadersXEpoch

func (h Headers) check() error {
	switch {
	case h >= HeadersOff<<1:
		return &fieldError{"Headers", fmt.Sprintf("%#x: is not made of the Headers constants", uint8(h))}
	case h&HeadersOff != 0 && h != HeadersOff:
		return &fieldError{"Headers", fmt.Sprintf("%#x: HeadersOff cannot be joined with others", uint8(h))}
	case bits.OnesCount8(uint8(h&headersX)) > 1:
		return &fieldError{"Headers", fmt.Sprintf("%#x: X-RateLimit-Reset can have only one form", uint8(h))}
	}
	return nil
}

// Header is one line of a response's header. The names that this package makes
// are in the canonical form of textproto.CanonicalMIMEHeaderKey.
type Header struct{ Name, Value string }

// maxField is the largest integer that a structured field can hold (RFC 9651,
// section 3.3.1).
const maxField = 999_999_999_999_999

// AppendHeaders appends the decision's response header lines to dst and returns
// the longer slice: what the limiter's Config.Headers choose, where a limit
// applied; and for a refused request Cache-Control: no-store, and Retry-After
// in whole seconds, rounded up, at least 1, unless no waiting will help.
// A response may have several lines of the rate limit headers, one from each
// limiter; Cache-Control and Retry-After replace what is there.
func (d Decision) AppendHeaders(dst []Header) []Header {
	if d.detail.snap == nil {
		return dst
	}
	dst = d.appendDraft10(dst)
	if n := d.statuses(); n > 0 {
		h := d.detail.snap.rules[d.decidingRule()].Headers
		if h&HeadersDraft03 != 0 {
			dst = d.appendThree(dst, "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", seconds(d.ResetAfter))
		}
		if h&headersX != 0 {
			dst = d.appendThree(dst, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", d.xReset(h))
		}
	}
	if !d.Allowed {
		dst = append(dst, Header{"Cache-Control", "no-store"})
		switch {
		case d.Reason == Failed:
			dst = append(dst, Header{"Retry-After", "1"})
		case d.Reason == OverLimit && d.RetryAfter != Never:
			dst = append(dst, Header{"Retry-After", strconv.FormatInt(retrySeconds(d.RetryAfter), 10)})
		}
	}
	return dst
}

func (d *Decision) appendDraft10(dst []Header) []Header {
	n := d.statuses()
	if n == 0 {
		return dst
	}
	rule, _ := d.limitAt(0)
	if !d.detail.snap.mixed && !rule.draft10() {
		return dst
	}
	policy, rate := d.policyField(n), d.rateField(n)
	if rate == "" {
		return dst
	}
	return append(dst, Header{"Ratelimit-Policy", policy}, Header{"Ratelimit", rate})
}

func (d *Decision) appendThree(dst []Header, limit, remaining, reset string, resetValue int64) []Header {
	return append(dst,
		Header{limit, strconv.FormatInt(d.Limit.capacity(), 10)},
		Header{remaining, strconv.FormatInt(d.Remaining, 10)},
		Header{reset, strconv.FormatInt(min(resetValue, maxField), 10)})
}

func (d *Decision) xReset(h Headers) int64 {
	switch {
	case h&HeadersXMillis != 0:
		return ceilDiv(d.ResetAfter, time.Millisecond)
	case h&HeadersXEpoch != 0:
		at := d.detail.at
		if r := d.detail.record; r != nil {
			at = r.items[0].at
		}
		return ceilDiv(time.Duration(at)*time.Microsecond+d.ResetAfter, time.Second)
	default:
		return seconds(d.ResetAfter)
	}
}

// draft10 says whether the rule's limits are in the fields of HeadersDraft10.
func (r *compiledRule) draft10() bool { return r.Headers == 0 || r.Headers&HeadersDraft10 != 0 }

// policyField returns the RateLimit-Policy field of all limits that can deny.
func (s *snapshot) policyField() string {
	var b []byte
	for _, i := range s.enforced {
		for j := range s.rules[i].Limits {
			b = appendPolicy(b, &s.rules[i].Limits[j])
		}
	}
	return string(b)
}

// policyField returns the field for the limits that applied.
func (d *Decision) policyField(n int) string {
	if d.eachRuleOnce() {
		return d.detail.snap.policy
	}
	var b []byte
	var named []string
	for i := range n {
		rule, limit := d.limitAt(i)
		l := &rule.Limits[limit]
		if rule.draft10() && !slices.Contains(named, l.Name) { // several keys of a rule have one policy
			b = appendPolicy(b, l)
			named = append(named, l.Name)
		}
	}
	return string(b)
}

// eachRuleOnce says that every rule that can deny applied, with one key, and
// that all of them are in the fields of HeadersDraft10.
func (d *Decision) eachRuleOnce() bool {
	rules := len(d.detail.snap.enforced)
	r := d.detail.record
	switch {
	case d.detail.snap.mixed:
		return false
	case r == nil:
		return rules == 1
	case len(r.items) != rules || len(d.detail.snap.rules) > 64:
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
	if l.Quota == 0 { // a Burst changes nothing
		b = append(b, '0')
	} else {
		b = strconv.AppendInt(b, l.capacity(), 10)
	}
	if w := l.policyWindow(); w > 0 { // w is a whole number above 0, or absent
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, w, 10)
	}
	return b
}

// policyWindow returns the seconds in which the limit's capacity comes back, 0
// if that is no whole number: the window, or Window × Burst / Quota of a token
// bucket.
func (l *Limit) policyWindow() int64 {
	micros := l.Window.Microseconds()
	if l.Algorithm == TokenBucket && l.Quota > 0 {
		q, r := wideMul(micros, l.capacity()).div(l.Quota)
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

func (d *Decision) rateField(n int) string {
	var buf [128]byte
	b := buf[:0]
	for i := range n {
		if rule, _ := d.limitAt(i); rule.draft10() {
			b = d.appendRate(b, i)
		}
	}
	return string(b)
}

func (d *Decision) appendRate(b []byte, i int) []byte {
	s := &d.LimitStatus
	if d.detail.record != nil {
		other := d.statusAt(i)
		s = &other
	}
	b = appendItem(b, s.Limit.Name)
	b = append(b, ";r="...)
	b = strconv.AppendInt(b, s.Remaining, 10)
	b = append(b, ";t="...)
	t := seconds(s.MoreAfter)
	if s.Exceeded && s.RetryAfter != Never {
		t = retrySeconds(s.RetryAfter)
	}
	return strconv.AppendInt(b, min(t, maxField), 10)
}

// retrySeconds returns a RetryAfter as in the header of that name.
func retrySeconds(d time.Duration) int64 { return max(1, seconds(d)) }

// seconds rounds up to whole seconds.
func seconds(d time.Duration) int64 { return ceilDiv(d, time.Second) }

func ceilDiv(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
