package connectlimit

import "github.com/floodgate-go/floodgate/core"

// RefusedError is the error of a call that a client's interceptor has not sent. It distinguishes
// the refusal of the client's own limiter from that of a server. It wraps the *connect.Error that
// a server would have sent, or the error that [OnDenied] has returned.
type RefusedError struct {
	// Decision is the decision that denied the call.
	Decision core.Decision
	// Procedure is the full name, such as /shop.v1.Orders/Place.
	Procedure string

	err error
}

// Error returns the text of the error that it wraps. It has no key.
func (e *RefusedError) Error() string { return e.err.Error() }

// Unwrap returns the error that a server would have sent, and Decision.Err, which is the error of
// the context if the context has ended while the call was waiting.
func (e *RefusedError) Unwrap() []error {
	if e.Decision.Err == nil {
		return []error{e.err}
	}
	return []error{e.err, e.Decision.Err}
}
