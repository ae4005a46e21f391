package adapter

import (
	"context"
	"errors"
	"net/http"

	"github.com/floodgate-go/floodgate/core"
)

// Response is what an adapter knows about a response after the handler has returned.
type Response struct {
	// Status is the status that the client gets. 0 means that the handler has written
	// none: the client then gets 200, or 500 after a panic.
	Status int
	// Ended reports whether the request's context had ended when the response began, or
	// when the handler returned if no response was begun.
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

// Ended reports whether a handler may have written nothing because its context ended.
// before is the request's context when the handler was called. after is the context that
// the request has now: a middleware behind the limiter may have replaced it. Such a
// middleware cancels its context when the handler returns, so that for after only a
// deadline that has passed counts.
func Ended(before, after context.Context) bool {
	return before.Err() != nil || errors.Is(after.Err(), context.DeadlineExceeded)
}

// IsContextError reports whether err, which a handler returned, says that a context ended.
// If the error handler then writes nothing, the request did not succeed.
func IsContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
