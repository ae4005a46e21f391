package core

import (
	"fmt"
	"math/bits"
	"strconv"
	"time"
)

// Headers chooses the rate limit headers of responses, allowed and denied: the
// zero value, one of the others, or several joined with |. HeadersDraft07 and
// HeadersDraft10 write the same two headers, so that they cannot be joined, and
// two rules of one limiter cannot have one each. Of the three HeadersX forms, one
// can be chosen.
type Headers uint8

const (
	// HeadersDraft10 are RateLimit-Policy and RateLimit, structured fields as
	// in draft-ietf-httpapi-ratelimit-headers-10, with one item for each limit.
	// The zero value means the same.
	//
	//	RateLimit-Policy: "api";q=5;w=60
	//	RateLimit: "api";r=4;t=60
	//
	// q is the limit's Quota and w its Window in seconds. Of a TokenBucket, q
	// is the Burst and w the time in which an empty bucket fills, so that q for
	// each w is the rate that the limit sustains. w is left out if it is no
	// whole number of seconds. r is the number of hits that remain, and t the
	// number of seconds, rounded up from whole milliseconds, until there are more: of a limit that
	// denies the request, until the limit would allow it, as in Retry-After;
	// 0 if no quota is missing.
	//
	// Of [Leases], q is the Quota and r the number of requests that could begin now.
	// There is no w, and no t unless the limit denies the request: t is then 1.
	HeadersDraft10 Headers = 1 << iota
	// HeadersDraft07 are RateLimit-Policy and RateLimit as in
	// draft-ietf-httpapi-ratelimit-headers-07.
	//
	//	RateLimit-Policy: 5;w=60
	//	RateLimit: limit=5, remaining=4, reset=60
	//
	// RateLimit describes the deciding limit: limit and remaining are numbers of
	// hits. reset is the number of seconds, rounded up, until the whole quota is
	// available; of a limit that denies the request, until the limit would allow
	// it, as in Retry-After. RateLimit-Policy has an item for each limit, which is
	// q and w of HeadersDraft10. The draft allows neither an item without w nor two
	// items with one number: the deciding limit has its item before others of the
	// same number, and other limits go without. Of [Leases], there is no item, and reset
	// is 0, or 1 if the limit denies the request.
	HeadersDraft07
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

const (
	headersX     = HeadersXSeconds | HeadersXMillis | HeadersXEpoch
	headersTwins = HeadersDraft07 | HeadersDraft10 // forms of the same two headers
)

// twin returns which of headersTwins h has, 0 if none. The zero value of a
// Headers is HeadersDraft10.
func (h Headers) twin() Headers {
	if h == 0 {
		return HeadersDraft10
	}
	return h & headersTwins
}

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

// Header is one line of a response's header. The names that this package makes
// are in the canonical form of textproto.CanonicalMIMEHeaderKey.
type Header struct{ Name, Value string }

// maxField is the largest integer that a structured field can hold (RFC 9651,
// section 3.3.1).
const maxField = 999_999_999_999_999

// AppendHeaders appends the decision's response header lines to dst and returns
// the longer slice: what the limiter's Config.Headers choose, if a limit
// applied; and for a denied request Cache-Control: no-store, and Retry-After
// in whole seconds, rounded up from whole milliseconds, at least 1, unless no waiting will help. Limits
// whose quota is Unlimited for the request are left out.
// A response may have several lines of the rate limit headers, one from each
// limiter; Cache-Control and Retry-After replace what is there.
func (d Decision) AppendHeaders(dst []Header) []Header {
	if d.detail.snap == nil {
		return dst
	}
	var wait string
	dst, wait = d.appendDraft10(dst)
	if n := d.statuses(); n > 0 && d.Limit.Quota != Unlimited {
		h := d.detail.snap.rules[d.decidingRule()].Headers
		if h&HeadersDraft07 != 0 {
			dst = d.appendDraft07(dst)
		}
		if h&HeadersDraft03 != 0 {
			dst = d.appendThree(dst, "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", seconds(d.ResetAfter))
		}
		if h&headersX != 0 {
			dst = d.appendThree(dst, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", d.xReset(h))
		}
	}
	if d.Allowed {
		return dst
	}
	dst = append(dst, Header{"Cache-Control", "no-store"})
	switch {
	case d.Reason == ReasonFailed || d.Reason == ReasonCanceled:
		dst = append(dst, Header{"Retry-After", "1"})
	case d.waits():
		if wait == "" {
			wait = strconv.FormatInt(retrySeconds(d.RetryAfter), 10)
		}
		dst = append(dst, Header{"Retry-After", wait})
	}
	return dst
}

// waits returns whether the response to the request has a Retry-After for the wait of
// a limit.
func (d *Decision) waits() bool {
	return !d.Allowed && d.Reason == ReasonOverLimit && d.RetryAfter != Never
}

func (d *Decision) appendThree(dst []Header, limit, remaining, reset string, resetValue int64) []Header {
	return append(dst,
		Header{limit, strconv.FormatInt(d.Limit.Capacity(), 10)},
		Header{remaining, strconv.FormatInt(d.Remaining, 10)},
		Header{reset, strconv.FormatInt(min(resetValue, maxField), 10)})
}

func (d *Decision) xReset(h Headers) int64 {
	switch {
	case h&HeadersXMillis != 0:
		return ceilDiv(wholeMillis(d.ResetAfter), time.Millisecond)
	case h&HeadersXEpoch != 0:
		at := d.at()
		return ceilDiv(time.Duration(at)*time.Microsecond+wholeMillis(d.ResetAfter), time.Second)
	default:
		return seconds(d.ResetAfter)
	}
}

// retrySeconds returns a RetryAfter as in the header of that name.
func retrySeconds(d time.Duration) int64 { return max(1, seconds(d)) }

// seconds rounds up to whole seconds, after wholeMillis.
func seconds(d time.Duration) int64 { return ceilDiv(wholeMillis(d), time.Second) }

// wholeMillis drops what is below a millisecond, so that the microsecond after the end of
// a minute does not make it 61 seconds. A wait below a millisecond stays: it is not 0.
func wholeMillis(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d
	}
	return d.Truncate(time.Millisecond)
}

func ceilDiv(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
