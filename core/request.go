package core

import "context"

// Request is the view that the limiter, hooks and key functions have of a request. Adapters
// implement it, and so may a program that limits messages or jobs.
//
// One goroutine at a time uses a Request. Strings and slices that its methods return stay valid
// after the request.
type Request interface {
	// Context returns the request's context. When it ends, the limiter stops waiting.
	Context() context.Context
	// Method returns the method as received.
	Method() string
	// Path returns the decoded path of the URL. One resource may have many paths: keys use Route.
	Path() string
	// EscapedPath returns the path of the URL as the client wrote it, with its percent-escapes; ""
	// if the adapter only knows Path.
	EscapedPath() string
	// Route returns the pattern of the matched route in the framework's spelling, "" before a
	// match.
	Route() string
	// PathValue returns a parameter of the matched route, such as id in "/items/{id}", as handlers
	// read it; "" if there is none or no route is matched.
	PathValue(name string) string
	// RemoteAddr returns the address of the connection's peer, as "host:port" if it has a port.
	// Headers never change it.
	RemoteAddr() string
	// HeaderValues returns all lines of a header in the order received, whatever the letter case of
	// name. The caller must not change the slice.
	HeaderValues(name string) []string
	// Cookie returns the first cookie of this name and whether it exists.
	Cookie(name string) (string, bool)
	// Query returns the first value of a parameter of the URL and whether it exists.
	Query(name string) (string, bool)
	// RawQuery returns the query of the URL as the client wrote it, without the question mark.
	RawQuery() string
	// Value returns a value that an earlier middleware stored, or nil: of the context, or of the
	// framework (gin.Context.Get, echo.Context.Get, fiber.Ctx.Locals).
	Value(key any) any
	// Body returns at most the first max bytes of the body as received, not decompressed. The
	// handler still gets the whole body. Body may be called several times. The caller must not
	// change or keep the slice.
	Body(max int) ([]byte, error)
}

// KeyFunc appends the key of a request to dst and returns the longer slice, as strconv.AppendInt
// does. Requests with the same key, even an empty one, share a counter. A KeyFunc must not keep dst
// or r. It may be called several times for a request, and concurrently for others.
//
// The error [SkipRule] means that the rule does not apply to the request. An error that wraps
// [ErrBadRequest] denies the request with 400, any other error with 503.
type KeyFunc func(dst []byte, r Request) ([]byte, error)

// StatusCanceled is the status of an Outcome that is Canceled, as in nginx's logs. No client sees
// it.
const StatusCanceled = 499

// Outcome is the result of an allowed request.
type Outcome struct {
	// Status is the status code that the client saw: 101 after a protocol upgrade or a hijacked
	// connection, [StatusCanceled] if Canceled is set and the handler did not panic.
	Status int
	// Canceled reports that the request's context ended before the handler began a response: the
	// client closed the connection (Fiber does not notice), or a timeout ended. A rule that counts
	// failures must count it, or clients could avoid the count.
	Canceled bool
	// Panicked reports that the handler panicked. Status is then what the client saw, or 500.
	Panicked bool
	// Header returns the first value of a response header, "" if there is none. It may be nil.
	Header func(name string) string
}

// Checker decides on requests. The Middleware of every adapter takes one. [Limiter] is a Checker.
// Its methods may be called concurrently.
type Checker interface {
	// Check decides on r and charges it. Errors are in the decision.
	Check(r Request) Decision
	// Deny returns the response to a denied request. An adapter calls it once.
	Deny(r Request, d Decision) Denial
	// Settle acts on the handler's outcome. An adapter calls it if the decision's NeedsOutcome is
	// true. A second call for a decision does nothing.
	Settle(r Request, d Decision, o Outcome)
}
