package grpclimit

import (
	"google.golang.org/grpc/status"

	"github.com/floodgate-go/floodgate/core"
)

// RefusedError is the error of a call that a client's interceptor has not sent. It distinguishes
// the refusal of the client's own limiter from that of a server. Its status is the one that a
// server would have sent, or that of the error that [OnDenied] has returned.
type RefusedError struct {
	// Decision is the decision that denied the call.
	Decision core.Decision
	// Method is the full method, such as /shop.v1.Orders/Place.
	Method string

	err error
}

// Error returns the text of the status. It has no key.
func (e *RefusedError) Error() string { return status.Convert(e.err).String() }

// GRPCStatus returns the status, for [status.FromError] and [status.Code].
func (e *RefusedError) GRPCStatus() *status.Status { return status.Convert(e.err) }

// Unwrap returns Decision.Err, which is the error of the context if the context has ended while
// the call was waiting, and the error that [OnDenied] has returned.
func (e *RefusedError) Unwrap() []error {
	errs := make([]error, 0, 2)
	for _, err := range []error{e.Decision.Err, e.err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
