package core

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Denial is the response to a denied request.
type Denial struct {
	// Status is the HTTP status code, 200 to 599. Any other means that of the standard denial.
	Status int
	// Header has lines that are set beside those of Decision.AppendHeaders. A line replaces the
	// response's lines of the same name.
	Header []Header
	// Body is the body, which a response to HEAD leaves out. If a hook replaces the body and
	// keeps the Content-Type of the standard denial, the beginning of the body decides:
	// application/problem+json for {"type":", application/json for another { or [, text/plain
	// for other text, none for an empty body.
	Body []byte
}

const (
	problemType = "application/problem+json"
	problemHead = `{"type":"` // how every standard body begins
)

// matchType corrects the Content-Type of a denial if a hook has replaced the body and kept the
// standard Content-Type.
func (d *Denial) matchType() {
	stale := func(h Header) bool { return h.Value == problemType && strings.EqualFold(h.Name, "Content-Type") }
	if !slices.ContainsFunc(d.Header, stale) {
		return
	}
	matching := typeOf(d.Body)
	if matching == problemType {
		return
	}
	d.Header = slices.Clone(d.Header) // a hook may use one slice for all
	if matching == "" {
		d.Header = slices.DeleteFunc(d.Header, stale)
		return
	}
	for i, h := range d.Header {
		if stale(h) {
			d.Header[i].Value = matching
		}
	}
}

// typeOf returns the Content-Type of a body.
func typeOf(body []byte) string {
	switch {
	case len(body) == 0:
		return ""
	case bytes.HasPrefix(body, []byte(problemHead)):
		return problemType
	case body[0] == '{' || body[0] == '[':
		return "application/json"
	default:
		return "text/plain; charset=utf-8"
	}
}

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
	badRequestHead = problemHead + `about:blank","title":"Bad Request","status":400,"detail":"`
	failedHead     = problemHead + `about:blank","title":"Service Unavailable","status":503,"detail":"`
	overLimitHead  = problemHead + `https://iana.org/assignments/http-problem-types#quota-exceeded",` +
		`"title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"`
)

// appendProblem appends the standard body. Names of limits need no escaping, because New checks
// them.
func (d *Decision) appendProblem(b []byte) []byte {
	switch d.Reason {
	case ReasonBadRequest:
		b = append(b, badRequestHead...)
		if e := (*BadRequestError)(nil); errors.As(d.Err, &e) {
			b = appendJSONText(b, e.Detail)
		} else {
			b = append(b, "The request cannot be understood."...)
		}
		return append(b, `"}`...)
	case ReasonFailed, ReasonCanceled:
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
