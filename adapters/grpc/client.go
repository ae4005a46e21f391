package grpclimit

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/floodgate-go/floodgate/adapters/internal/rpc"
	"github.com/floodgate-go/floodgate/core"
)

// DialOptions returns the options of a client whose unary calls and streams c limits. It chains
// [UnaryClientInterceptor] and [StreamClientInterceptor].
func DialOptions(c core.Checker, opts ...Option) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(UnaryClientInterceptor(c, opts...)),
		grpc.WithChainStreamInterceptor(StreamClientInterceptor(c, opts...)),
	}
}

// UnaryClientInterceptor returns an interceptor that sends a call if c allows it. If not, nothing
// is sent, and the error is a [*DeniedError] with the status that a server would have sent.
//
// A limiter with a MaxWait makes a call wait for its turn: see [core.Config]. The calls for one
// key are sent first come, first served. A call fails with ResourceExhausted if its turn would
// come after MaxWait or after the deadline of its context, and with Canceled if it is canceled
// while it waits. Nothing is charged then. With a MaxWait of [core.MaxWindow], only the context
// bounds the wait.
//
// For key functions, the metadata is that of the outgoing call, and RemoteAddr is the target of
// the connection, such as dns:///api.example:443. An attempt that gRPC repeats by its retry policy
// is not counted again.
func UnaryClientInterceptor(c core.Checker, opts ...Option) grpc.UnaryClientInterceptor {
	i := newInterceptor(c, opts)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, callOpts ...grpc.CallOption) (err error) {
		call, err := i.begin(ctx, cc, method, req)
		if err != nil {
			return err
		}
		panicked := true
		defer func() { end(call, ctx, err, panicked) }()
		err = invoker(ctx, method, req, reply, cc, callOpts...)
		panicked = false
		return err
	}
}

// StreamClientInterceptor is UnaryClientInterceptor for streams. A stream counts once. It waits
// for its turn before it is opened. For c it ends when gRPC has finished it: see
// [grpc.ClientConn.NewStream] for what a program has to do with every stream.
func StreamClientInterceptor(c core.Checker, opts ...Option) grpc.StreamClientInterceptor {
	i := newInterceptor(c, opts)
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, callOpts ...grpc.CallOption) (grpc.ClientStream, error) {
		call, err := i.begin(ctx, cc, method, nil)
		if err != nil {
			return nil, err
		}
		if !call.NeedsOutcome() {
			return streamer(ctx, desc, cc, method, callOpts...)
		}
		opened := false
		defer func() {
			if !opened { // a panic
				end(call, ctx, nil, true)
			}
		}()
		callOpts = append(callOpts[:len(callOpts):len(callOpts)], grpc.OnFinish(func(err error) { end(call, ctx, err, false) }))
		s, err := streamer(ctx, desc, cc, method, callOpts...)
		opened = true
		if err != nil {
			end(call, ctx, err, false)
		}
		return s, err
	}
}

// begin decides on a client's call. The error is that of a denied call.
func (i *interceptor) begin(ctx context.Context, cc *grpc.ClientConn, method string, message any) (*rpc.Call, error) {
	if code, text := rpc.GivenUp(ctx.Err()); code != rpc.OK {
		return nil, status.Error(codes.Code(code), text) // gRPC would send nothing
	}
	r := &request{ctx: ctx, method: method, route: method, client: true, message: message}
	if cc != nil {
		r.remote = cc.Target()
	}
	d := i.checker.Check(r)
	if !d.Allowed {
		return nil, &DeniedError{Decision: d, Method: method, err: i.deny(r, &d, func([]core.Header) {})}
	}
	return rpc.Enter(i.checker, r, d, nil), nil
}
