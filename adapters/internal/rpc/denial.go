package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Denial is what the client of a denied call gets.
type Denial struct {
	Code    Code
	Message string
	// RetryAfter is how long the client must wait, for google.rpc.RetryInfo. 0 if no wait is known
	// or none helps.
	RetryAfter time.Duration
	// Violations are for google.rpc.QuotaFailure. They are empty unless the call is over a limit.
	Violations []Violation
	// Fields are the metadata of the response.
	Fields []core.Header
}

// Violation is a limit that denies the call. It has the names and numbers of the configuration, and
// nothing that the client has sent.
type Violation struct {
	Subject     string // the rule
	ID          string // the limit
	Quota       int64
	Description string
}

// maxMessage is the most bytes of a message, which is sent in a header.
const maxMessage = 1 << 10

// NewDenial returns the denial of a call. denial is the response that the checker's Deny has
// returned.
func NewDenial(d *core.Decision, denial core.Denial) Denial {
	r := Denial{Code: codeOf(d.Reason, denial.Status), Fields: allowedIn(denial.Header)}
	r.Message = message(denial.Body, r.Code)
	for _, line := range d.AppendHeaders(nil) { // those of the denial replace them
		if !slices.ContainsFunc(r.Fields, func(f core.Header) bool { return strings.EqualFold(f.Name, line.Name) }) {
			r.Fields = append(r.Fields, line)
		}
	}
	if d.Reason == core.ReasonCanceled {
		r.Code, r.Message = GivenUp(context.Canceled)
	}
	if r.Code != ResourceExhausted || d.Reason != core.ReasonOverLimit {
		return r
	}
	if d.RetryAfter != core.Never {
		r.RetryAfter = d.RetryAfter
	}
	for s := range d.Limits() {
		if !s.Allowed {
			limit, _, _ := strings.Cut(s.Limit.String(), " (") // without the algorithm
			r.Violations = append(r.Violations, Violation{
				Subject: "rule:" + s.Rule, ID: s.Limit.Name, Quota: s.Limit.Quota,
				Description: "the limit " + s.Limit.Name + " allows " + limit,
			})
		}
	}
	return r
}

// GivenUp returns the code and the message for a call whose context ended with err before the call
// was allowed. The code is OK if err is not the error of a context.
func GivenUp(err error) (code Code, message string) {
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled, "the call was canceled before the limiter allowed it"
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded, "the deadline ended before the limiter allowed the call"
	}
	return OK, ""
}

// codeOf returns the code for a denial. A status that a hook has chosen counts if a code
// corresponds to it.
func codeOf(reason core.Reason, status int) Code {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return InvalidArgument
	case http.StatusUnauthorized:
		return Unauthenticated
	case http.StatusForbidden:
		return PermissionDenied
	case http.StatusNotFound:
		return NotFound
	case http.StatusConflict:
		return Aborted
	case http.StatusPreconditionFailed:
		return FailedPrecondition
	case http.StatusInternalServerError:
		return Internal
	case http.StatusNotImplemented:
		return Unimplemented
	case http.StatusServiceUnavailable:
		return Unavailable
	case http.StatusGatewayTimeout:
		return DeadlineExceeded
	}
	switch reason {
	case core.ReasonBadRequest:
		return InvalidArgument
	case core.ReasonFailed, core.ReasonCanceled:
		return Unavailable
	default:
		return ResourceExhausted
	}
}

// message returns the text of a denial's body: of problem details (RFC 9457), the title and the
// detail; of any other JSON, a general text.
func message(body []byte, code Code) string {
	body = bytes.TrimSpace(body)
	text := ""
	if len(body) > 0 && body[0] == '{' {
		var problem struct{ Title, Detail string }
		if json.Unmarshal(body, &problem) == nil {
			text = strings.Trim(problem.Title+": "+problem.Detail, ": ")
		}
	} else {
		text = string(body)
	}
	// The status message of gRPC must be UTF-8.
	text = strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
	switch {
	case text != "":
		return text
	case code == ResourceExhausted:
		return "the call is over a limit"
	default:
		return "the call is denied"
	}
}
