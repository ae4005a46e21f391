// Package adaptertest is the table of HTTP behaviour that every adapter passes: what holds in one
// framework holds in all.
//
// An adapter's test describes its framework as an [Adapter] and calls [Run], which starts real
// servers on the loopback interface and speaks HTTP/1.1 with them.
package adaptertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Adapter is a framework as the table uses it.
type Adapter struct {
	// Serve starts a server for app on a free port of 127.0.0.1, and returns its address as
	// "127.0.0.1:port". It registers with t what stops it.
	Serve func(t *testing.T, app App) string
	// PerIP serves a handler on GET / behind the adapter's one-liner.
	PerIP func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) string
	// LimitsFirst says that App.Limits run before the router has looked for the route.
	LimitsFirst bool
	// Parameter is how a pattern of the framework spells the parameter id of a path, such as
	// "{id}".
	Parameter string
	// ServeHTTP2 is Serve with TLS and HTTP/2; nil if the framework is not one of net/http. The
	// Context of those that are embeds an Exchange.
	ServeHTTP2 func(t *testing.T, app App) string
	// Own returns a header of the framework's own request that r stands for, by the framework's own
	// means, and whether the adapter finds that request.
	Own func(r core.Request, header string) (value string, found bool)
	// Name is the name of the adapter's package, and Mount calls its Middleware with a number of
	// nil options.
	Name  string
	Mount func(c core.Checker, nilOptions int)
	// ReturnsErrors says that handlers return errors to the framework, and so does OnDenied.
	ReturnsErrors bool
	// Flushes says that a handler can send a part of a response before the next one is made.
	Flushes bool
	// SendsAtOnce says that what a handler writes is sent before the handler has ended, and can no
	// longer be replaced.
	SendsAtOnce bool
	// Hijacks says that a handler can take over the connection.
	Hijacks bool
	// Panics says that the server survives a handler's panic without the framework's recovery
	// middleware.
	Panics bool
	// SeesCancel says that a request's context ends when its client goes.
	SeesCancel bool
	// TimeoutOutside and TimeoutInside say that http.TimeoutHandler can be put in before and behind
	// the limiter. Frameworks that reuse their contexts have no safe place for it behind.
	TimeoutOutside, TimeoutInside bool
	// KeepsBody says that the body is still there after a middleware that reads it.
	KeepsBody bool
	// ReadsFirst says that the server has read the body before any handler runs: a denied client
	// has sent it all the same.
	ReadsFirst bool
	// RejectsTrailers says that the server answers 400 to a request with X-Forwarded-For or
	// X-Real-IP in its trailer, before any handler runs.
	RejectsTrailers bool
}

// App is an application in no framework's words.
type App struct {
	// Limits stand before the router's routes, the first outermost.
	Limits []Limit
	// Outside and Inside are the framework's own middlewares before and behind Limits, the first
	// outermost.
	Outside, Inside []Middleware
	// Group, where it is not "", is the prefix of a group of the framework's that Limits stand on,
	// and Routes are in.
	Group string
	// AnswersErrors puts in an error handler of the application's that answers ErrWrongPassword,
	// also a wrapped one, with 401. It writes nothing if the error is Ignored.
	AnswersErrors bool
	// User is stored by a middleware before Limits, under UserKey, as the framework's
	// authentication middlewares do; "" stores none.
	User string
	// Routes are the routes. Their patterns have no parameters but Adapter.Parameter.
	Routes []Route
}

// Middleware is one of those that every framework has.
type Middleware string

// The middlewares. CORS lets AllowedOrigin in and answers preflights with 204.
const (
	Recovery Middleware = "recovery"
	CORS     Middleware = "CORS"
	Logging  Middleware = "logging"
	// Deadline gives the request's context a deadline after DeadlineAfter. If the framework has no
	// such middleware, it is the one that its users write. PatientDeadline is the same with
	// PatientAfter.
	Deadline        Middleware = "deadline"
	PatientDeadline Middleware = "patient deadline"
	// Timeout is http.TimeoutHandler with DeadlineAfter, and PatientTimeout the same with
	// PatientAfter.
	Timeout        Middleware = "timeout"
	PatientTimeout Middleware = "patient timeout"
	// ReadsBody reads the whole body, ReadsPart its first eight bytes, and ParsesForm parses the
	// form, by the framework's own means. None of them puts back what it has read.
	ReadsBody  Middleware = "reads the body"
	ReadsPart  Middleware = "reads a part of the body"
	ParsesForm Middleware = "parses the form"
	// Headers sets StaleHeaders in the response before the next handler runs.
	Headers Middleware = "headers"
	// Copies puts a copy of the request and its header in its place. Its context has Copied as key and value.
	Copies Middleware = "copies the request"
	Copied string     = "copied"
)

// The deadlines of the middlewares: one that tests wait for, and one that they do not reach.
const (
	DeadlineAfter = 20 * time.Millisecond
	PatientAfter  = time.Minute
)

// StaleHeaders are lines of a response that an application sets for every one of its answers. They
// are wrong for a denied request.
var StaleHeaders = map[string]string{"Retry-After": "99999", "Cache-Control": "public", "Etag": `"1"`, "Last-Modified": "Sat, 01 Jan 2000 00:00:00 GMT"}

// AllowedOrigin is the origin that CORS lets in.
const AllowedOrigin = "https://a.example"

// ErrWrongPassword is an error that only the application knows: see App.AnswersErrors.
var ErrWrongPassword = errors.New("wrong password")

// Ignored reports whether an error is that of a context. Many applications write no response to
// such an error, because they assume that the client has gone away.
func Ignored(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// UserKey is the key of App.User.
const UserKey = "user"

// Limit is a middleware of the adapter's.
type Limit struct {
	Checker core.Checker
	// Denied, where it is not "", is the body that the adapter's deny option writes, with status
	// 418, from a handler of the framework's own kind.
	Denied string
	// DeniedError makes the handler return an error with status 418, in the framework's way.
	DeniedError bool
	// Expose is the adapter's option ExposeDecision.
	Expose bool
}

// Route is a route with its own limits, the first outermost.
type Route struct {
	Method, Pattern string
	Limits          []Limit
	Handler         Handler
}

// Handler is a handler in no framework's words. An error of type StatusError is returned in the
// framework's way to return a status as an error, or written, where it has none; one that is
// wrapped is wrapped there too.
type Handler func(c Context) error

// StatusError is an error with a status.
type StatusError int

// Error implements error.
func (e StatusError) Error() string { return "status error" }

// Context is what a handler works with.
type Context interface {
	// Context returns the request's context, as the framework's handlers get it.
	Context() context.Context
	// Body reads the request's body.
	Body() ([]byte, error)
	// Form returns a field of a form, by the framework's own means.
	Form(name string) string
	// PathValue returns a parameter of the matched route, by the framework's own means.
	PathValue(name string) string
	// JSON decodes the body by the framework's own means.
	JSON(v any) error
	// Header returns a header of the request.
	Header(name string) string
	// SetHeader sets a header of the response.
	SetHeader(name, value string)
	// Respond writes status and body.
	Respond(status int, body string) error
	// Decision is the adapter's DecisionFrom.
	Decision() (core.Decision, bool)
	// SetCost is the adapter's SetCost.
	SetCost(cost int64) bool
	// Deny is the adapter's Deny.
	Deny(d core.Decision) error
	// Stream writes parts, flushing each. next is called before each part and ends the response
	// where it returns "".
	Stream(next func() string) error
	// Hijack takes over the connection and writes raw to it. It closes the connection when end is
	// closed, perhaps after the handler has returned, or if end is nil, at once.
	Hijack(raw string, end <-chan struct{}) error
}

// Run runs the table.
func Run(t *testing.T, a Adapter) {
	for _, group := range []struct {
		name string
		run  func(*testing.T, Adapter)
	}{
		{"Client address", clientAddress},
		{"Routes", routes},
		{"Path values", pathValues},
		{"Bodies", bodies},
		{"Bodies that were read before", readBefore},
		{"Outcomes", outcomes},
		{"Cancellation", cancellation},
		{"Responses", responses},
		{"Log", logged},
		{"Mounting", mounting},
		{"Decisions", decisions},
		{"Costs", costs},
		{"Waiting", waiting},
		{"Writers", writers},
		{"In flight", inFlight},
		{"Panics", panics},
		{"Login", login},
		{"Order", order},
		{"HTTP/2", http2},
	} {
		t.Run(group.name, func(t *testing.T) { group.run(t, a) })
	}
}
