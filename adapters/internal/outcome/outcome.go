// Package outcome makes the core.Outcome of a request, by the same rules in all
// adapters.
package outcome

import (
	"context"
	"errors"
	"net/http"

	"github.com/floodgate-go/floodgate/core"
)

// Response is what an adapter knows of a response when the handler is done.
type Response struct {
	// Status is the status that the client saw or will see; 0 if the handler
	// wrote none. The client then sees 200, or 500 after a panic.
	Status int
	// Ended reports that the request's context had ended when the response was
	// begun, or, if none was begun, when the handler was done.
	Ended    bool
	Panicked bool
	Header   func(name string) string
}

// Outcome returns what the limiter learns of the response.
func (r Response) Outcome() core.Outcome {
	o := core.Outcome{Status: r.Status, Canceled: r.Ended, Panicked: r.Panicked, Header: r.Header}
	switch {
	case r.Panicked && r.Status == 0:
		o.Status = http.StatusInternalServerError
	case r.Panicked:
	case r.Ended:
		o.Status = core.StatusCanceled
	case r.Status == 0:
		o.Status = http.StatusOK
	}
	return o
}

// Ended reports whether a handler that wrote nothing may have done so because
// its context ended. before is the request's context when the handler was
// called, after the one that the request has now: a middleware behind the
// limiter may have given it another. Such a middleware cancels its context when
// the handler returns, so only a deadline that has passed counts.
func Ended(before, after context.Context) bool {
	return before.Err() != nil || errors.Is(after.Err(), context.DeadlineExceeded)
}

// IsContextError reports that a handler returned an error because a context
// ended. If an error handler then writes nothing, the request did not succeed.
func IsContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
