package core

import (
	"errors"
	"strconv"
	"unicode/utf8"
)

// Denial is the response to a denied request.
type Denial struct {
	// Status is the HTTP status code, 200 to 599. Any other value means the standard denial's.
	Status int
	// Header has lines to set beside those of Decision.AppendHeaders. A line replaces those of the
	// same name.
	Header []Header
	// Body is left out of a response to HEAD. A hook that replaces the standard body must replace
	// its Content-Type, too.
	Body []byte
}

const problemType = "application/problem+json"

// The status codes of decisions.
const (
	statusOK                 = 200
	statusBadRequest         = 400
	statusTooManyRequests    = 429 // RFC 6585, section 4
	statusServiceUnavailable = 503
)

// denialStatus returns the status of the standard denial.
func (d *Decision) denialStatus() int {
	if d.Allowed {
		return statusTooManyRequests
	}
	return d.Status()
}

func (d *Decision) denial() Denial {
	m := new(struct { // one allocation
		header [1]Header
		body   [272]byte
	})
	m.header[0] = Header{"Content-Type", problemType}
	return Denial{Status: d.denialStatus(), Header: m.header[:], Body: d.appendProblem(m.body[:0])}
}

// The beginnings of the standard bodies, up to the detail.
const (
	badRequestHead = `{"type":"about:blank","title":"Bad Request","status":400,"detail":"`
	failedHead     = `{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"`
	overLimitHead  = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
		`"title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"`
)

// appendProblem appends the standard body. Names of limits need no escaping, because New checks
// them.
func (d *Decision) appendProblem(b []byte) []byte {
	switch d.denialStatus() {
	case statusBadRequest:
		b = append(b, badRequestHead...)
		if e := (*BadRequestError)(nil); errors.As(d.Err, &e) {
			b = appendJSONText(b, e.Detail)
		} else {
			b = append(b, "The request cannot be understood."...)
		}
		return append(b, `"}`...)
	case statusServiceUnavailable:
		b = append(b, failedHead...)
		return append(b, `The request cannot be processed right now. Try again later."}`...)
	}
	b = append(b, overLimitHead...)
	if d.RetryAfter == Never {
		b = append(b, "The request costs more than the quota and cannot be allowed."...)
	} else {
		b = append(b, "Try again in "...)
		b = append(strconv.AppendInt(b, retrySeconds(d.RetryAfter), 10), " s."...)
	}
	b = append(b, '"')
	if d.Reason == ReasonOverLimit {
		b = append(b, `,"violated-policies":[`...)
		n := len(b)
		for i := range d.limits() {
			if d.resultAt(i).Allowed {
				continue
			}
			if len(b) > n {
				b = append(b, ',')
			}
			_, l := d.limitAt(i)
			b = append(b, '"')
			b = append(b, l.Name...)
			b = append(b, '"')
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendJSONText appends s as the inside of a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendJSONText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}
