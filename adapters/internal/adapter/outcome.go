package adapter

import (
	"context"
	"errors"
	"net/http"

	"github.com/floodgate-go/floodgate/core"
)

// Response is what an adapter knows about a response after the handler has returned.
type Response struct {
	// Status is the status that the client gets. 0 means that the handler has written none: the
	// client then gets 200, or 500 after a panic.
	Status int
	// Ended reports whether the context had ended when the response began; without a response, when
	// the handler returned.
	Ended    bool
	Panicked bool
	Header   func(name string) string
}

// Outcome returns the core.Outcome for the response.
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

// Ended reports whether the request's context has ended. before is the one with which the handler
// was called, and after the one that the request has now. Of after, only a passed deadline counts:
// a middleware that has replaced the context cancels it when the handler returns.
func Ended(before, after context.Context) bool {
	return before.Err() != nil || errors.Is(after.Err(), context.DeadlineExceeded)
}

// IsContextError reports whether err, which a handler returned, says that a context ended. If the
// error handler then writes nothing, the request did not succeed.
func IsContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
