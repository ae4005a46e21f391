package core

import "context"

// Request is all that the core, the hooks and the key functions see of a
// request. An adapter implements it for its framework; a program that limits
// something else (a message, a job) may implement it too.
//
// A Request is used by one goroutine at a time. Every string and slice that a
// method returns stays valid, and unchanged, after the request has ended.
type Request interface {
	// Context returns the request's context. The limiter honours it while it
	// waits; a charge is not undone because the context ends.
	Context() context.Context
	// Method returns the method on the wire, letter case preserved.
	Method() string
	// Path returns the path of the request's URL, decoded. It is what the
	// client wrote: one resource may have many paths. Keys use Route.
	Path() string
	// EscapedPath returns the path of the request's URL as the client wrote it,
	// with its percent-escapes, without the query. It is "" if the adapter
	// cannot tell; Path is all that is known then.
	EscapedPath() string
	// Route returns the pattern of the matched route in the framework's own
	// spelling, "" if none has been matched (yet).
	Route() string
	// PathValue returns the value of a parameter of the matched route, such as id in
	// "/items/{id}", as the framework's handlers read it. It is "" if the route has
	// no parameter of this name, and before a route has been matched.
	PathValue(name string) string
	// RemoteAddr returns the address of the peer of the connection, as
	// "host:port" if it has a port. Headers never change it.
	RemoteAddr() string
	// HeaderValues returns every line of the named header in the order
	// received. The name is matched without regard to letter case. The caller
	// must not change the slice.
	HeaderValues(name string) []string
	// Cookie returns the first cookie of this name and whether there is one.
	Cookie(name string) (string, bool)
	// Query returns the first value of the URL's query parameter and whether
	// there is one. The body is never looked at.
	Query(name string) (string, bool)
	// RawQuery returns the query of the request's URL as the client wrote it,
	// without the question mark; "" if there is none.
	RawQuery() string
	// Value returns what an earlier middleware has stored for the request
	// under key, nil if nothing: a context value, or the framework's own
	// per-request value (gin.Context.Get, echo.Context.Get, fiber.Ctx.Locals).
	Value(key any) any
	// Body returns at most the first max bytes of the body exactly as
	// received, nothing decompressed, and leaves the body whole for the
	// handler. It may be called several times. The caller must not change or
	// keep the slice. An error is a failure to read from the client.
	Body(max int) ([]byte, error)
}

// KeyFunc names the counter that a request belongs to: it appends the key to
// dst, as strconv.AppendInt appends a number, and returns the longer slice. An
// empty key is a key like any other: all requests without the identifier share
// one quota. The error [SkipRule] means that the rule does not apply to this
// request; an error that wraps [ErrBadRequest] makes the limiter answer 400;
// any other is treated as a failing store is.
//
// A KeyFunc may be called more than once for one request, and concurrently for
// different requests. It must not keep dst or r.
type KeyFunc func(dst []byte, r Request) ([]byte, error)

// StatusCanceled is the status of an Outcome that is Canceled. No client sees
// it: it is the status that nginx logs for a request whose client closed the
// connection before there was an answer.
const StatusCanceled = 499

// Outcome is how a request ended that the limiter allowed.
type Outcome struct {
	// Status is the status code that the client saw. It is 101 after a protocol
	// upgrade or a hijacked connection, and StatusCanceled if Canceled is set
	// and the handler did not panic.
	Status int
	// Canceled reports that the request's context ended before the handler
	// began a response: the client closed the connection, or a timeout ended.
	// Fiber does not notice that a client has closed the connection.
	// What the handler wrote after that does not count, because the client has
	// not seen it. Whether such a request succeeded is not known. A rule that
	// counts failures must keep it charged, or clients could try without being
	// counted by closing the connection.
	Canceled bool
	// Panicked reports that the handler panicked. Status is then what the client
	// saw, or 500 if it is not known yet.
	Panicked bool
	// Header returns the first value of a header of the response, "" if there
	// is none. It may be nil.
	Header func(name string) string
}

// Checker decides on requests; it is what every adapter's Middleware takes.
// A [Limiter] is one. Its methods may be called concurrently. An adapter calls Check
// each time that a request passes the Middleware.
type Checker interface {
	// Check decides on r and charges for it. It always returns a decision: an
	// error is part of it.
	Check(r Request) Decision
	// Deny returns the response to a request whose decision was not Allowed. An
	// adapter calls it once for each such request.
	Deny(r Request, d Decision) Denial
	// Settle ends what Check began, once the handler's outcome is known. An
	// adapter calls it for each decision whose NeedsOutcome is true; a second
	// call for the same decision does nothing.
	Settle(r Request, d Decision, o Outcome)
}
