package core

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// Headers chooses the rate limit headers of allowed and denied responses. Several are joined with
// |. HeadersDraft07 and HeadersDraft10 write the same headers: a limiter can have only one of them.
// Only one of the X forms can be joined.
type Headers uint8

const (
	// HeadersDraft10 writes RateLimit-Policy and RateLimit as in
	// draft-ietf-httpapi-ratelimit-headers-10, with an item for each limit.
	//
	//	RateLimit-Policy: "api";q=5;w=60
	//	RateLimit: "api";r=4;t=60
	//
	// q is the Quota and w the Window in seconds, left out if it is not whole; for a TokenBucket,
	// the Burst and the time to fill it. r is the hits left. t is the seconds until there are more,
	// 0 if the whole quota is left. If the limit denies the request, t is as in Retry-After.
	HeadersDraft10 Headers = 1 << iota
	// HeadersDraft07 writes RateLimit-Policy and RateLimit as in
	// draft-ietf-httpapi-ratelimit-headers-07.
	//
	//	RateLimit-Policy: 5;w=60
	//	RateLimit: limit=5, remaining=4, reset=60
	//
	// Both describe the deciding limit. reset is the seconds until the whole quota is left or, if
	// the limit denies the request, as in Retry-After. RateLimit-Policy has the q and w of
	// HeadersDraft10. It is left out if there is no w.
	HeadersDraft07
	// HeadersDraft03 writes RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset of the
	// deciding limit, as drafts up to -06. The reset is the seconds until the whole quota is left.
	HeadersDraft03
	// HeadersXSeconds writes the same as X-RateLimit-Limit, X-RateLimit-Remaining and
	// X-RateLimit-Reset.
	HeadersXSeconds
	// HeadersXMillis is HeadersXSeconds with the reset in milliseconds.
	HeadersXMillis
	// HeadersXEpoch is HeadersXSeconds with the reset as Unix time in seconds.
	HeadersXEpoch
	// HeadersOff writes none. It cannot be joined with others.
	HeadersOff
)

const (
	headersX     = HeadersXSeconds | HeadersXMillis | HeadersXEpoch
	headersTwins = HeadersDraft07 | HeadersDraft10 // forms of the same two headers
)

func (h Headers) check() error {
	switch {
	case h >= HeadersOff<<1:
		return &fieldError{"Headers", fmt.Sprintf("%#x: is not made of the Headers constants", uint8(h))}
	case h&HeadersOff != 0 && h != HeadersOff:
		return &fieldError{"Headers", fmt.Sprintf("%#x: HeadersOff cannot be joined with others", uint8(h))}
	case h&headersTwins == headersTwins:
		return &fieldError{"Headers", fmt.Sprintf("%#x: HeadersDraft07 and HeadersDraft10 cannot be joined: both write RateLimit and RateLimit-Policy", uint8(h))}
	case bits.OnesCount8(uint8(h&headersX)) > 1:
		return &fieldError{"Headers", fmt.Sprintf("%#x: X-RateLimit-Reset can have only one form", uint8(h))}
	}
	return nil
}

// Header is one line of a response's header.
type Header struct{ Name, Value string }

// AppendHeaders appends the response's header lines to dst: those that Config.Headers chooses for
// the limits that applied, except [Unlimited] ones. A denied request also gets Cache-Control:
// no-store and, if a wait helps, Retry-After in whole seconds, rounded up, at least 1.
//
// If a response passes several limiters, rate limit lines are added to earlier ones, and
// Cache-Control and Retry-After replace them.
func (d Decision) AppendHeaders(dst []Header) []Header {
	if d.applied() {
		if rate := d.rateField(); rate != "" {
			dst = append(dst, Header{"Ratelimit-Policy", d.policyField()}, Header{"Ratelimit", rate})
		}
		if h := d.snap.rules[d.rule].Headers; h&^(HeadersDraft10|HeadersOff) != 0 {
			dst = d.appendOthers(dst, h)
		}
	}
	if d.Allowed {
		return dst
	}
	dst = append(dst, Header{"Cache-Control", "no-store"})
	switch {
	case d.Reason == ReasonFailed || d.Reason == ReasonCanceled:
		dst = append(dst, Header{"Retry-After", "1"})
	case d.Reason == ReasonOverLimit && d.RetryAfter != Never:
		dst = append(dst, Header{"Retry-After", strconv.FormatInt(retrySeconds(d.RetryAfter), 10)})
	}
	return dst
}

// appendOthers appends the lines about the deciding limit that h chooses, except those of
// HeadersDraft10.
func (d *Decision) appendOthers(dst []Header, h Headers) []Header {
	l := d.deciding()
	if l.Quota == Unlimited {
		return dst
	}
	if h&HeadersDraft07 != 0 {
		dst = d.appendDraft07(dst, l)
	}
	if h&HeadersDraft03 != 0 {
		dst = d.appendThree(dst, l, "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", seconds(d.ResetAfter))
	}
	if h&headersX != 0 {
		dst = d.appendThree(dst, l, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", d.xReset(h))
	}
	return dst
}

func (d *Decision) appendThree(dst []Header, l *Limit, limit, remaining, reset string, resetValue int64) []Header {
	return append(dst,
		Header{limit, strconv.FormatInt(l.Capacity(), 10)},
		Header{remaining, strconv.FormatInt(d.Remaining, 10)},
		Header{reset, strconv.FormatInt(resetValue, 10)})
}

func (d *Decision) xReset(h Headers) int64 {
	switch {
	case h&HeadersXMillis != 0:
		return millis(d.ResetAfter)
	case h&HeadersXEpoch != 0:
		const second = 1_000_000 // microseconds
		reset := d.at + min(1000*millis(d.ResetAfter), d.ResetAfter.Microseconds())
		return (reset + second - 1) / second
	default:
		return seconds(d.ResetAfter)
	}
}

// retrySeconds returns the value of Retry-After.
func retrySeconds(d time.Duration) int64 { return max(1, seconds(d)) }

// seconds returns millis in whole seconds, rounded up.
func seconds(d time.Duration) int64 { return (millis(d) + 999) / 1000 }

// millis drops microseconds, so that a window that ends a microsecond after a minute is 60 seconds
// and not 61. A wait below a millisecond counts as one, because it is not 0.
func millis(d time.Duration) int64 {
	if 0 < d && d < time.Millisecond {
		return 1
	}
	return d.Milliseconds()
}

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
func (d *Decision) policyField() string {
	if d.eachRuleOnce() {
		return d.snap.policy
	}
	var b []byte
	var named []string
	for i := range d.limits() {
		rule, l := d.limitAt(i)
		if rule.Headers&HeadersDraft10 != 0 && l.Quota != Unlimited && !slices.Contains(named, l.Name) { // several keys of a rule have one policy
			b = appendPolicy(b, l)
			named = append(named, l.Name)
		}
	}
	return string(b)
}

// eachRuleOnce reports whether the snapshot's policy field fits: every rule applied with one key
// and its own quotas, and all have the same headers.
func (d *Decision) eachRuleOnce() bool {
	rules := len(d.snap.rules)
	switch {
	case d.single():
		return rules == 1
	case d.snap.mixed || d.rest.quotas != nil || d.items() != rules:
		return false
	}
	seen := uint64(0)
	for i := range d.rest.items {
		seen |= 1 << d.rest.items[i].rule
	}
	return bits.OnesCount64(seen) == rules
}

func appendPolicy(b []byte, l *Limit) []byte {
	b = appendItem(b, l.Name)
	b = append(b, ";q="...)
	b = strconv.AppendInt(b, l.Capacity(), 10)
	if w := l.policyWindow(); w > 0 { // w is a whole number above 0, or absent
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, w, 10)
	}
	return b
}

// policyWindow returns the seconds in which the limit's capacity comes back, 0 if they are not
// whole: the window, or Window × Burst / Quota of a token bucket.
func (l *Limit) policyWindow() int64 {
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
	return micros / time.Second.Microseconds()
}

func appendItem(b []byte, name string) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"')
}

// rateField returns the RateLimit field, "" if no limit is in it.
func (d *Decision) rateField() string {
	var buf [128]byte
	b := buf[:0]
	for i := range d.limits() {
		if rule, l := d.limitAt(i); rule.Headers&HeadersDraft10 != 0 && l.Quota != Unlimited {
			r := d.resultAt(i)
			b = appendRate(b, l, &r)
		}
	}
	return string(b)
}

func appendRate(b []byte, l *Limit, r *Result) []byte {
	b = appendItem(b, l.Name)
	b = append(b, ";r="...)
	b = strconv.AppendInt(b, r.Remaining, 10)
	b = append(b, ";t="...)
	t := seconds(r.MoreAfter)
	if !r.Allowed && r.RetryAfter != Never {
		t = retrySeconds(r.RetryAfter)
	}
	return strconv.AppendInt(b, t, 10)
}

// appendDraft07 appends the two lines of HeadersDraft07. A limit must have applied.
func (d *Decision) appendDraft07(dst []Header, l *Limit) []Header {
	if w := l.policyWindow(); w > 0 {
		dst = append(dst, Header{"Ratelimit-Policy", strconv.FormatInt(l.Capacity(), 10) + ";w=" + strconv.FormatInt(w, 10)})
	}
	reset := seconds(d.ResetAfter)
	if d.Reason == ReasonOverLimit && d.RetryAfter != Never {
		reset = retrySeconds(d.RetryAfter)
	}
	var buf [64]byte
	b := append(buf[:0], "limit="...)
	b = strconv.AppendInt(b, l.Capacity(), 10)
	b = append(b, ", remaining="...)
	b = strconv.AppendInt(b, d.Remaining, 10)
	b = append(b, ", reset="...)
	b = strconv.AppendInt(b, reset, 10)
	return append(dst, Header{"Ratelimit", string(b)})
}
