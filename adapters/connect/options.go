package connectlimit

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP returns an interceptor that allows each client address quota calls per window,
// counted in this process. A stream is one call. [core.Limit] has the ranges of quota and
// window. PerIP panics if quota, window or an option is invalid, as template.Must does. Use
// one interceptor for all handlers: each has counters of its own.
//
// The client address is the address of the connection's peer. Behind a proxy, the peer is
// the proxy, so that all clients share one limit. The option [keyfuncs.Behind] names the
// header with the client's address and the proxies that write it:
//
//	connectlimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) connect.Interceptor {
	return Interceptor(adapter.PerIP(quota, window, opts))
}

// Option is an option of [Interceptor]: [OnDenied] or [PerMessage].
type Option func(*options)

type options struct {
	onDenied   func(context.Context, connect.Spec, core.Decision) error
	perMessage bool
}

// OnDenied sets a function that returns the error of a denied call. It replaces the error that is
// made of the result of [core.Hooks.OnDisallowed]; the header of the response stays. If f
// returns nil, the client gets the usual error: a denied call never reaches the handler. f is
// called for every decision that is not Allowed, including bad requests and failures: see
// [core.Decision].Reason. It may be called concurrently.
func OnDenied(f func(ctx context.Context, spec connect.Spec, d core.Decision) error) Option {
	return func(o *options) { o.onDenied = f }
}

// PerMessage makes each message from the client count. Opening the stream counts as the first, so
// that a client cannot open streams without being counted. If a message is denied, the handler's
// Receive returns the error, and so does every Receive after it. The client gets this error as the
// end of the stream, whatever the handler returns. By default, a stream counts once.
//
// The outcome of a message is OK when the next one arrives. That of the last one is the outcome
// of the stream. DecisionFrom and SetCost concern the message that the handler received last.
// The rate limit fields of the response are those of the stream; those of a message that is
// denied are in the trailer.
//
// Do not use it with package inflight: each message would release the slot of the one before.
// Give streams two interceptors: one for their slots, and one for their messages.
//
// The option has no effect on unary calls and on clients.
func PerMessage() Option {
	return func(o *options) { o.perMessage = true }
}

// interceptor is one in which a checker decides on calls.
type interceptor struct {
	checker core.Checker
	options
}

// Interceptor returns an interceptor that lets a call pass if c allows it, and returns an error if
// not. It serves handlers and clients: give it to connect.WithInterceptors. On a handler, it
// counts the calls that arrive; the message of a unary call has been received before. On a
// client, it counts the calls that the program makes. A denied call sends nothing, and its error
// is a [*DeniedError].
//
// A limiter with a MaxWait makes a call wait for its turn: see [core.Config]. The calls for one
// key pass first come, first served. A call fails with CodeResourceExhausted if its turn would
// come after MaxWait or after the deadline of its context, and with CodeCanceled if it is canceled
// while it waits. Nothing is charged then. On a client, MaxWait may be [core.MaxWindow]: then only
// the context bounds the wait.
//
// c counts a call in each of its interceptors. Interceptor panics if c or an option is nil.
func Interceptor(c core.Checker, opts ...Option) connect.Interceptor {
	adapter.MustChecker("connectlimit", c)
	i := &interceptor{checker: c}
	adapter.Apply("connectlimit", &i.options, opts)
	return i
}
