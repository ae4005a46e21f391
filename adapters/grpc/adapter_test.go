package grpclimit_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
	"github.com/floodgate-go/floodgate/adapters/grpc/internal/texts"
	"github.com/floodgate-go/floodgate/adapters/internal/rpctest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAdapter(t *testing.T) {
	rpctest.Run(t, rpctest.Adapter{
		Serve: func(t *testing.T, app rpctest.App) rpctest.Server { return serve(t, app, options(app)...) },
		PerIP: func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) rpctest.Server {
			return serve(t, rpctest.App{}, grpclimit.PerIP(quota, window, opts...)...)
		},
		Code: func(o core.Outcome) uint32 { return uint32(grpclimit.Code(o)) },
		Message: func(r core.Request) (string, bool) {
			m, ok := grpclimit.Message(r).(*texts.Text)
			return m.GetText(), ok
		},
		Panics: map[string]func(){
			"no checker":      func() { grpclimit.ServerOptions(nil) },
			"a nil limiter":   func() { grpclimit.UnaryServerInterceptor((*core.Limiter)(nil)) },
			"a nil option":    func() { grpclimit.StreamServerInterceptor(oneBy(keyfuncs.Static("")), nil) },
			"a client's":      func() { grpclimit.DialOptions(nil) },
			"a quota below 0": func() { grpclimit.PerIP(-1, 1) },
		},
		Method:        "POST",
		EncodesBinary: true,
	})
}

// server is the address of a server.
type server string

func serve(t *testing.T, app rpctest.App, opts ...grpc.ServerOption) rpctest.Server {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if app.Handler == nil {
		app.Handler = rpctest.OK
	}
	s := grpc.NewServer(opts...)
	texts.RegisterTextsServer(s, &service{handler: app.Handler})
	done := make(chan error)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return server(listener.Addr().String())
}

func options(app rpctest.App) (opts []grpc.ServerOption) {
	if app.Recovers {
		opts = append(opts, grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (_ any, err error) {
			defer recovered(&err)
			return h(ctx, req)
		}), grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
			defer recovered(&err)
			return h(srv, ss)
		}))
	}
	if app.User != "" {
		opts = append(opts, grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			return h(context.WithValue(ctx, rpctest.UserKey{}, app.User), req)
		}), grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			return h(srv, userStream{ss, app.User})
		}))
	}
	for _, l := range app.Limits {
		var o []grpclimit.Option
		if l.PerMessage {
			o = append(o, grpclimit.PerMessage())
		}
		if l.Denied != "" || l.DeniedNil {
			o = append(o, grpclimit.OnDenied(func(context.Context, string, core.Decision) error {
				if l.DeniedNil {
					return nil
				}
				return status.Error(codes.FailedPrecondition, l.Denied)
			}))
		}
		opts = append(opts, grpclimit.ServerOptions(l.Checker, o...)...)
	}
	return opts
}

func recovered(err *error) {
	if recover() != nil {
		*err = status.Error(codes.Internal, "a panic")
	}
}

type userStream struct {
	grpc.ServerStream
	user string
}

func (s userStream) Context() context.Context {
	return context.WithValue(s.ServerStream.Context(), rpctest.UserKey{}, s.user)
}

// service calls the table's handler for every method.
type service struct {
	texts.UnimplementedTextsServer
	handler rpctest.Handler
}

func (s *service) Once(ctx context.Context, in *texts.Text) (*texts.Text, error) {
	c := &call{ctx: ctx, Messages: rpctest.Messages{In: []string{in.GetText()}}}
	err := c.serve(s.handler)
	return &texts.Text{Text: c.Last}, err
}

func (s *service) Down(in *texts.Text, stream grpc.ServerStreamingServer[texts.Text]) error {
	return (&call{ctx: stream.Context(), Messages: rpctest.Messages{In: []string{in.GetText()}, Out: out(stream.Send)}}).serve(s.handler)
}

func (s *service) Up(stream grpc.ClientStreamingServer[texts.Text, texts.Text]) error {
	c := &call{ctx: stream.Context(), Messages: rpctest.Messages{Next: next(stream.Recv)}}
	if err := c.serve(s.handler); err != nil {
		return err
	}
	return stream.SendAndClose(&texts.Text{Text: c.Last})
}

func (s *service) Both(stream grpc.BidiStreamingServer[texts.Text, texts.Text]) error {
	return (&call{ctx: stream.Context(), Messages: rpctest.Messages{Next: next(stream.Recv), Out: out(stream.Send)}}).serve(s.handler)
}

func next(receive func() (*texts.Text, error)) func() (string, error) {
	return func() (string, error) {
		m, err := receive()
		return m.GetText(), err
	}
}

func out(send func(*texts.Text) error) func(string) error {
	return func(text string) error { return send(&texts.Text{Text: text}) }
}

// statusOf returns a handler's error in gRPC's words.
func statusOf(err error) error {
	var e *rpctest.Error
	if errors.As(err, &e) {
		return status.Error(codes.Code(e.Code), e.Text)
	}
	return err
}
