package grpclimit

import (
	"context"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/floodgate-go/floodgate/adapters/internal/rpc"
	"github.com/floodgate-go/floodgate/core"
)

// Deny returns the error for a call that a handler denies with a decision of its own, such as that
// of [core.Limiter.Take]. It sets the metadata of the response, as the interceptors do. The handler
// returns the error.
func Deny(ctx context.Context, d core.Decision) error {
	r := &request{ctx: ctx}
	r.method, _ = grpc.Method(ctx)
	r.route = r.method
	denial := rpc.NewDenial(&d, d.Denial(r))
	_ = grpc.SetHeader(ctx, pairs(denial.Fields)) // fails if the header has been sent
	return errorOf(&denial)
}

// deny returns the error of a denied call. set sets fields of the response.
func (i *interceptor) deny(r *request, d *core.Decision, set func([]core.Header)) error {
	denial := rpc.NewDenial(d, i.checker.Deny(r, *d))
	set(denial.Fields)
	if i.onDenied != nil {
		if err := i.onDenied(r.ctx, r.method, *d); err != nil {
			return err
		}
	}
	return errorOf(&denial)
}

// errorOf returns the status error for a denial, with the details of google.rpc.
func errorOf(r *rpc.Denial) error {
	s := status.New(codes.Code(r.Code), r.Message)
	var details []protoadapt.MessageV1
	if r.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)})
	}
	if len(r.Violations) > 0 {
		q := &errdetails.QuotaFailure{}
		for _, v := range r.Violations {
			q.Violations = append(q.Violations, &errdetails.QuotaFailure_Violation{Subject: v.Subject, QuotaId: v.ID, QuotaValue: v.Quota, Description: v.Description})
		}
		details = append(details, q)
	}
	if detailed, err := s.WithDetails(details...); err == nil {
		s = detailed
	}
	return s.Err()
}

// pairs returns header lines as metadata.
func pairs(lines []core.Header) metadata.MD {
	md := make(metadata.MD, len(lines))
	for _, line := range lines {
		name := strings.ToLower(line.Name)
		md[name] = append(md[name], line.Value)
	}
	return md
}

// DeniedError is the error of a call that a client's interceptor has not sent. It distinguishes
// the denial of the client's own limiter from that of a server. Its status is the one that a
// server would have sent, or that of the error that [OnDenied] has returned.
type DeniedError struct {
	// Decision is the decision that denied the call.
	Decision core.Decision
	// Method is the full method, such as /shop.v1.Orders/Place.
	Method string

	err error
}

// Error returns the text of the status. It has no key.
func (e *DeniedError) Error() string { return status.Convert(e.err).String() }

// GRPCStatus returns the status, for [status.FromError] and [status.Code].
func (e *DeniedError) GRPCStatus() *status.Status { return status.Convert(e.err) }

// Unwrap returns Decision.Err, which is the error of the context if the context has ended while
// the call was waiting, and the error that [OnDenied] has returned.
func (e *DeniedError) Unwrap() []error {
	if e.Decision.Err == nil {
		return []error{e.err}
	}
	return []error{e.Decision.Err, e.err}
}
