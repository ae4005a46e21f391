package grpclimit

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP returns the options of a server that allows each client address quota calls per window,
// counted in this process. A stream is one call. [core.Limit] has the ranges of quota and window.
// PerIP panics if quota, window or an option is invalid, as template.Must does.
//
// The client address is the address of the connection's peer. Behind a proxy, the peer is the
// proxy, so that all clients share one limit. The option [keyfuncs.Behind] names the metadata with
// the client's address and the proxies that write it:
//
//	grpclimit.PerIP(100, time.Minute, keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
func PerIP(quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) []grpc.ServerOption {
	return ServerOptions(adapter.PerIP(quota, window, opts))
}

// ServerOptions returns the options of a server whose unary calls and streams c limits. It chains
// [UnaryServerInterceptor] and [StreamServerInterceptor]. Interceptors of options before these run
// first: put a recovery and the authentication before, if keys are users.
func ServerOptions(c core.Checker, opts ...Option) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(UnaryServerInterceptor(c, opts...)),
		grpc.ChainStreamInterceptor(StreamServerInterceptor(c, opts...)),
	}
}

// Option is an option of the interceptors: [OnDenied] or [PerMessage].
type Option func(*options)

type options struct {
	onDenied   func(context.Context, string, core.Decision) error
	perMessage bool
}

// OnDenied sets a function that returns the error of a denied call. method is the full method. It
// replaces the error that is made of the result of [core.Hooks.OnDisallowed]; the metadata of the
// response stays. If f returns nil, the client gets the usual error: a denied call never reaches
// the handler. f is called for every decision that is not Allowed, also for bad requests and
// failures: see [core.Decision].Reason. It may be called concurrently.
func OnDenied(f func(ctx context.Context, method string, d core.Decision) error) Option {
	return func(o *options) { o.onDenied = f }
}

// PerMessage makes each message from the client count. Opening the stream counts as the first, so
// that a client cannot open streams without being counted. If a message is denied, the handler's
// Recv returns the error, and so does every Recv after it. The client gets this error as the end of
// the stream, whatever the handler returns. By default, a stream counts once.
//
// The outcome of a message is OK when the next one arrives. That of the last one is the outcome of
// the stream. DecisionFrom and SetCost concern the message that the handler received last. The rate
// limit fields of the response are those of the stream; those of a message that is denied are in
// the trailer.
//
// Do not use it with package inflight: each message would release the slot of the one before. Give
// streams two interceptors: one for their slots, and one for their messages.
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

func newInterceptor(c core.Checker, opts []Option) *interceptor {
	adapter.MustChecker("grpclimit", c)
	i := &interceptor{checker: c}
	adapter.Apply("grpclimit", &i.options, opts)
	return i
}
