package connectlimit

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/floodgate-go/floodgate/adapters/internal/rpc"
	"github.com/floodgate-go/floodgate/core"
)

// Deny returns the error for a call that a handler denies with a decision of its own, such as that
// of [core.Limiter.Take]. It sets the header of the response, as the interceptor does. The handler
// returns the error. ctx is the context that the handler got.
func Deny(ctx context.Context, d core.Decision) error {
	r := &request{ctx: ctx}
	var header http.Header
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		r.spec, r.peer, r.header, r.method = info.Spec(), info.Peer(), info.RequestHeader(), info.HTTPMethod()
		header = info.ResponseHeader()
	}
	denial := rpc.NewDenial(&d, d.Denial(r))
	set(header, denial.Fields)
	return errorOf(&denial)
}

// deny returns the error of a denied call, and sets the fields of the response. header is nil
// if there is no response.
func (i *interceptor) deny(r *request, d *core.Decision, header http.Header) error {
	denial := rpc.NewDenial(d, i.checker.Deny(r, *d))
	set(header, denial.Fields)
	if i.onDenied != nil {
		if err := i.onDenied(r.ctx, r.spec, *d); err != nil {
			return err
		}
	}
	return errorOf(&denial)
}

// errorOf returns the error for a denial, with the details of google.rpc.
func errorOf(r *rpc.Denial) *connect.Error {
	err := connect.NewError(connect.Code(r.Code), errors.New(r.Message))
	add := func(m proto.Message) {
		if detail, failed := connect.NewErrorDetail(m); failed == nil {
			err.AddDetail(detail)
		}
	}
	if r.RetryAfter > 0 {
		add(&errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)})
	}
	if len(r.Violations) > 0 {
		q := &errdetails.QuotaFailure{}
		for _, v := range r.Violations {
			q.Violations = append(q.Violations, &errdetails.QuotaFailure_Violation{Subject: v.Subject, QuotaId: v.ID, QuotaValue: v.Quota, Description: v.Description})
		}
		add(q)
	}
	return err
}

// set adds header lines of a decision to a header, if there is one. Cache-Control and Retry-After
// may have one line only.
func set(header http.Header, lines []core.Header) {
	for _, line := range lines {
		switch name := http.CanonicalHeaderKey(line.Name); {
		case header == nil:
		case name == "Cache-Control" || name == "Retry-After":
			header[name] = []string{line.Value}
		default:
			header[name] = append(header[name], line.Value)
		}
	}
}

// DeniedError is the error of a call that a client's interceptor has not sent. It distinguishes
// the denial of the client's own limiter from that of a server. It wraps the *connect.Error that
// a server would have sent, or the error that [OnDenied] has returned.
type DeniedError struct {
	// Decision is the decision that denied the call.
	Decision core.Decision
	// Procedure is the full name, such as /shop.v1.Orders/Place.
	Procedure string

	err error
}

// Error returns the text of the error that it wraps. It has no key.
func (e *DeniedError) Error() string { return e.err.Error() }

// Unwrap returns the error that a server would have sent, and Decision.Err, which is the error of
// the context if the context has ended while the call was waiting.
func (e *DeniedError) Unwrap() []error {
	if e.Decision.Err == nil {
		return []error{e.err}
	}
	return []error{e.err, e.Decision.Err}
}
