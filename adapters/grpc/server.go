package grpclimit

import (
	"context"

	"google.golang.org/grpc"

	"github.com/floodgate-go/floodgate/adapters/internal/rpc"
	"github.com/floodgate-go/floodgate/core"
)

// UnaryServerInterceptor returns an interceptor that calls the handler if c allows the call, and
// returns an error if not. gRPC has received and decoded the request message before. A call
// whose message cannot be decoded is never counted.
//
// c counts a call in each of its interceptors. UnaryServerInterceptor panics if c or an option
// is nil.
func UnaryServerInterceptor(c core.Checker, opts ...Option) grpc.UnaryServerInterceptor {
	i := newInterceptor(c, opts)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		r := &request{ctx: ctx, method: info.FullMethod, route: info.FullMethod, message: req}
		d := i.checker.Check(r)
		// An error says that the response's header has been sent, or that ctx is not a
		// server's. Then the client gets no fields.
		set := func(lines []core.Header) { _ = grpc.SetHeader(ctx, pairs(lines)) }
		if !d.Allowed {
			return nil, i.deny(r, &d, set)
		}
		set(d.AppendHeaders(nil))
		call := rpc.Enter(i.checker, r, d, callOf(ctx))
		panicked := true
		defer func() { end(call, ctx, err, panicked) }()
		resp, err = handler(context.WithValue(ctx, callKey{}, call), req)
		panicked = false
		return resp, err
	}
}

// StreamServerInterceptor returns an interceptor that calls the handler of a stream if c allows
// the stream, and returns an error if not. A stream counts once, unless the option [PerMessage]
// is given. It ends for c when the handler returns.
//
// StreamServerInterceptor panics if c or an option is nil.
func StreamServerInterceptor(c core.Checker, opts ...Option) grpc.StreamServerInterceptor {
	i := newInterceptor(c, opts)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
		ctx := ss.Context()
		r := &request{ctx: ctx, method: info.FullMethod}
		if srv != nil { // nil: UnknownServiceHandler, for a method that the client has made up
			r.route = info.FullMethod
		}
		d := i.checker.Check(r)
		set := func(lines []core.Header) { _ = ss.SetHeader(pairs(lines)) }
		if !d.Allowed {
			return i.deny(r, &d, set)
		}
		set(d.AppendHeaders(nil))
		call := rpc.Enter(i.checker, r, d, callOf(ctx))
		s := &serverStream{ServerStream: ss, ctx: context.WithValue(ctx, callKey{}, call), by: i, request: r}
		s.counts, s.messages.Call = i.perMessage, call
		panicked := true
		defer func() {
			err = s.messages.Err(err)
			end(call, ctx, err, panicked)
		}()
		err = handler(srv, s)
		panicked = false
		return err
	}
}

// end settles a call after its handler has returned err.
func end(call *rpc.Call, ctx context.Context, err error, panicked bool) {
	code, contextError := codeOf(err)
	call.End(rpc.End{Code: code, Ended: contextError || ctx.Err() != nil, Panicked: panicked}.Outcome())
}

// serverStream is a stream that a checker has allowed.
type serverStream struct {
	grpc.ServerStream
	ctx      context.Context //nolint:containedctx // that of the stream, with the call
	by       *interceptor
	request  *request
	counts   bool // each message counts
	messages rpc.Messages
}

// Context implements grpc.ServerStream.
func (s *serverStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream. With PerMessage, it counts the message.
func (s *serverStream) RecvMsg(m any) error {
	if !s.counts {
		return s.ServerStream.RecvMsg(m)
	}
	r := *s.request
	r.message = m
	return s.messages.Receive(func() error { return s.ServerStream.RecvMsg(m) }, &r, func(d *core.Decision) error {
		return s.by.deny(&r, d, func(lines []core.Header) { s.SetTrailer(pairs(lines)) })
	})
}
