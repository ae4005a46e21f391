package grpclimit

import (
	"context"
	"sync/atomic"

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
		set(rpc.Fields(&d))
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
		counts := i.perMessage && info.IsClientStream
		set(rpc.Fields(&d))
		s := &serverStream{ServerStream: ss, by: i, request: r, first: true, counts: counts}
		s.call = rpc.Enter(i.checker, r, d, callOf(ctx))
		s.ctx = context.WithValue(ctx, callKey{}, s.call)
		panicked := true
		defer func() {
			if denied := s.denied.Load(); denied != nil {
				err = *denied
			}
			end(s.call, ctx, err, panicked)
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
	ctx     context.Context //nolint:containedctx // that of the stream, with the call
	by      *interceptor
	request *request
	call    *rpc.Call
	counts  bool                  // each message counts
	first   bool                  // no message has been received; of the goroutine that receives
	denied  atomic.Pointer[error] // the error of a message that was denied
}

// Context implements grpc.ServerStream.
func (s *serverStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream. With PerMessage, it counts the message.
func (s *serverStream) RecvMsg(m any) error {
	if !s.counts {
		return s.ServerStream.RecvMsg(m)
	}
	if denied := s.denied.Load(); denied != nil {
		return *denied
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if s.first {
		s.first = false
		return nil
	}
	if s.call.NeedsOutcome() {
		s.call.Settle(rpc.End{}.Outcome())
	}
	r := *s.request
	r.message = m
	d := s.by.checker.Check(&r)
	if d.Allowed {
		s.call.Next(&r, d)
		return nil
	}
	err := s.by.deny(&r, &d, func(lines []core.Header) { s.SetTrailer(pairs(lines)) })
	s.denied.Store(&err)
	return err
}
