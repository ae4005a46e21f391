// Package rpctest is the table of behaviours that the adapters of gRPC and Connect pass, over
// sockets, with clients made of generated code. It knows neither framework, so that it can be
// in the root module.
//
// The service has four methods: Once answers a text with a text, Up many with one, Down one
// with many, and Both many with many. The table's handlers are the same for all of them.
package rpctest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Adapter is a framework as the table uses it.
type Adapter struct {
	// Serve starts a server on a free port of 127.0.0.1. It registers with t what stops it.
	Serve func(t *testing.T, app App) Server
	// PerIP serves handlers that answer "ok" behind the adapter's one-liner.
	PerIP func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) Server
	// Code is the adapter's Code.
	Code func(core.Outcome) uint32
	// Message returns the text of the adapter's Message, and whether there is a message.
	Message func(core.Request) (string, bool)
	// Panics calls the adapter's functions with what is nil or invalid, one at a time.
	Panics map[string]func()
	// Method is the method of Once in HTTP.
	Method string
	// EncodesBinary says that the client encodes metadata whose name ends in -bin. If not, the
	// table does.
	EncodesBinary bool
}

// App is a server in no framework's words.
type App struct {
	// Limits are the interceptors, the first outermost.
	Limits []Limit
	// Recovers puts an interceptor before Limits that makes Internal of a panic.
	Recovers bool
	// User is stored in the context by an interceptor before Limits, under UserKey.
	User string
	// Handler serves all methods; nil: it receives all texts and sends "ok".
	Handler Handler
}

// UserKey is the key of App.User.
type UserKey struct{}

// Limit is an interceptor of the adapter's.
type Limit struct {
	Checker    core.Checker
	PerMessage bool
	// Denied, if it is not "", is the text of the error with code 9 that the adapter's OnDenied
	// returns.
	Denied string
	// DeniedNil makes OnDenied return nil.
	DeniedNil bool
}

// Handler is a handler in no framework's words. An error of type Error is returned in the
// framework's words.
type Handler func(c Call) error

// Error is an error with a code.
type Error struct {
	Code uint32
	Text string
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Call is what a handler works with.
type Call interface {
	Context() context.Context
	// Receive returns the next text of the client; io.EOF after the last one.
	Receive() (string, error)
	// Send sends a text. The last one is the answer of Once and Up.
	Send(text string) error
	Decision() (core.Decision, bool)
	SetCost(cost int64) bool
	Deny(d core.Decision) error
}

// Server is a server that runs.
type Server interface {
	// Dial returns a client that connects from a local address. limits are the adapter's
	// interceptors on the client, the first outermost.
	Dial(t *testing.T, from string, limits ...core.Checker) Client
}

// Kind is one of the methods.
type Kind string

// The methods.
const (
	Once Kind = "Once"
	Up   Kind = "Up"
	Down Kind = "Down"
	Both Kind = "Both"
)

// Kinds are the methods.
var Kinds = []Kind{Once, Up, Down, Both}

// Route is what Request.Route returns for a method.
func (k Kind) Route() string { return "/floodgate.texts.v1.Texts/" + string(k) }

// Client calls the methods, with generated code.
type Client interface {
	// Do calls a method, sends the texts (of Once and Down, the first) and reads the whole
	// answer. metadata has names and values, one after the other.
	Do(ctx context.Context, kind Kind, texts []string, metadata ...string) Reply
	// Open opens a stream of Both.
	Open(ctx context.Context, metadata ...string) Stream
}

// Stream is a stream of Both.
type Stream interface {
	Send(text string) error
	// Receive returns the next text, or what ended the stream.
	Receive() (text string, end *Reply)
	// CloseSend ends what the client sends. With Connect, it closes what the client receives too,
	// because a stream whose context was canceled ends for the server when both are closed.
	CloseSend()
}

// Reply is the answer to a call.
type Reply struct {
	Texts   []string
	Code    uint32
	Message string
	// Details is the number of details, of any type.
	Details int
	// RetryAfter and Violations are of RetryInfo and QuotaFailure. A violation is the subject, the
	// identifier, the value and the description, with spaces between them.
	RetryAfter time.Duration
	Violations []string
	// Header has the metadata of the response, header and trailer. It may be nil if the client
	// has sent nothing.
	Header func(name string) []string
}

// The codes that the table names.
const (
	codeCanceled          = 1
	codeInvalidArgument   = 3
	codeDeadlineExceeded  = 4
	codePermissionDenied  = 7
	codeResourceExhausted = 8
	codeInternal          = 13
	codeUnavailable       = 14
)

var errPlain = errors.New("an error without a code")

// Messages are the methods Receive and Send of a Call. A framework sets the functions for the
// side that is a stream.
type Messages struct {
	In   []string // what Receive returns if Next is nil
	Next func() (string, error)
	Out  func(string) error
	Last string // what Send has got if Out is nil
}

// Receive implements Call.
func (m *Messages) Receive() (string, error) {
	if m.Next != nil {
		return m.Next()
	}
	if len(m.In) == 0 {
		return "", io.EOF
	}
	text := m.In[0]
	m.In = m.In[1:]
	return text, nil
}

// Send implements Call.
func (m *Messages) Send(text string) error {
	if m.Out != nil {
		return m.Out(text)
	}
	m.Last = text
	return nil
}

// Run runs the table.
func Run(t *testing.T, a Adapter) {
	for _, group := range []struct {
		name string
		run  func(*testing.T, Adapter)
	}{
		{"Arguments", arguments},
		{"Keys", keys},
		{"Client address", clientAddress},
		{"Hostile metadata", hostile},
		{"Denials", denials},
		{"Fields", fields},
		{"Outcomes", outcomes},
		{"Hanging up", hangingUp},
		{"Panics", panics},
		{"Several limiters", several},
		{"Costs", costs},
		{"Messages", messages},
		{"In flight", inFlights},
		{"Stalled clients", stalled},
		{"Waiting", waiting},
		{"Stores", stores},
		{"Concurrency", concurrency},
		{"Clients", clients},
	} {
		t.Run(group.name, func(t *testing.T) { group.run(t, a) })
	}
}

func arguments(t *testing.T, a Adapter) {
	for name, call := range a.Panics {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}
