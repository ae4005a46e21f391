package connectlimit_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts/textsconnect"
	"github.com/floodgate-go/floodgate/adapters/internal/rpctest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The table passes with every protocol of Connect.
func TestAdapter(t *testing.T) {
	for _, p := range []struct {
		name    string
		method  string
		options []connect.ClientOption
	}{
		{"Connect", http.MethodPost, nil},
		{"Connect with GET", http.MethodGet, []connect.ClientOption{connect.WithHTTPGet()}},
		{"Connect with JSON", http.MethodPost, []connect.ClientOption{connect.WithProtoJSON()}},
		{"gRPC", http.MethodPost, []connect.ClientOption{connect.WithGRPC()}},
		{"gRPC-Web", http.MethodPost, []connect.ClientOption{connect.WithGRPCWeb()}},
	} {
		t.Run(p.name, func(t *testing.T) {
			rpctest.Run(t, rpctest.Adapter{
				Serve: func(t *testing.T, app rpctest.App) rpctest.Server {
					return server{serve(t, app, interceptors(app)...), p.options}
				},
				PerIP: func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) rpctest.Server {
					return server{serve(t, rpctest.App{}, connectlimit.PerIP(quota, window, opts...)), p.options}
				},
				Code: func(o core.Outcome) uint32 { return uint32(connectlimit.Code(o)) },
				Message: func(r core.Request) (string, bool) {
					m, ok := connectlimit.Message(r).(*texts.Text)
					return m.GetText(), ok
				},
				Panics: map[string]func(){
					"no checker":      func() { connectlimit.Interceptor(nil) },
					"a nil limiter":   func() { connectlimit.Interceptor((*core.Limiter)(nil)) },
					"a nil option":    func() { connectlimit.Interceptor(oneBy(keyfuncs.Static("")), nil) },
					"a quota below 0": func() { connectlimit.PerIP(-1, 1) },
				},
				Method: p.method,
			})
		})
	}
}

// server is a server and how its clients speak to it.
type server struct {
	addr    string
	options []connect.ClientOption
}

func serve(t *testing.T, app rpctest.App, interceptors ...connect.Interceptor) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if app.Handler == nil {
		app.Handler = rpctest.OK
	}
	_, handler := textsconnect.NewTextsHandler(&service{handler: app.Handler}, connect.WithInterceptors(interceptors...))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: handler, Protocols: protocols, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	done := make(chan error)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return listener.Addr().String()
}

func interceptors(app rpctest.App) (all []connect.Interceptor) {
	if app.Recovers {
		all = append(all, around(recovers))
	}
	if app.User != "" {
		all = append(all, around(func(ctx context.Context, next func(context.Context) error) error {
			return next(context.WithValue(ctx, rpctest.UserKey{}, app.User))
		}))
	}
	for _, l := range app.Limits {
		var opts []connectlimit.Option
		if l.PerMessage {
			opts = append(opts, connectlimit.PerMessage())
		}
		if l.Denied != "" || l.DeniedNil {
			opts = append(opts, connectlimit.OnDenied(func(context.Context, connect.Spec, core.Decision) error {
				if l.DeniedNil {
					return nil
				}
				return connect.NewError(connect.CodeFailedPrecondition, errors.New(l.Denied))
			}))
		}
		all = append(all, connectlimit.Interceptor(l.Checker, opts...))
	}
	return all
}

// around is an interceptor of a server: it calls next, which calls the handler.
type around func(ctx context.Context, next func(context.Context) error) error

func (a around) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (resp connect.AnyResponse, err error) {
		err = a(ctx, func(ctx context.Context) (err error) {
			resp, err = next(ctx, r)
			return err
		})
		return resp, err
	}
}

func (around) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (a around) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, c connect.StreamingHandlerConn) error {
		return a(ctx, func(ctx context.Context) error { return next(ctx, c) })
	}
}

// recovers makes CodeInternal of a panic, as connect.WithRecover does; it can be put first.
func recovers(ctx context.Context, next func(context.Context) error) (err error) {
	defer func() {
		if recover() != nil {
			err = connect.NewError(connect.CodeInternal, errors.New("a panic"))
		}
	}()
	return next(ctx)
}

// service calls the table's handler for every method.
type service struct{ handler rpctest.Handler }

func (s *service) Once(ctx context.Context, r *connect.Request[texts.Text]) (*connect.Response[texts.Text], error) {
	c := &call{ctx: ctx, Messages: rpctest.Messages{In: []string{r.Msg.GetText()}}}
	if err := c.serve(s.handler); err != nil {
		return nil, err
	}
	return connect.NewResponse(&texts.Text{Text: c.Last}), nil
}

func (s *service) Down(ctx context.Context, r *connect.Request[texts.Text], stream *connect.ServerStream[texts.Text]) error {
	return (&call{ctx: ctx, Messages: rpctest.Messages{In: []string{r.Msg.GetText()}, Out: out(stream.Send)}}).serve(s.handler)
}

func (s *service) Up(ctx context.Context, stream *connect.ClientStream[texts.Text]) (*connect.Response[texts.Text], error) {
	c := &call{ctx: ctx, Messages: rpctest.Messages{Next: func() (string, error) {
		if stream.Receive() {
			return stream.Msg().GetText(), nil
		}
		if err := stream.Err(); err != nil {
			return "", err
		}
		return "", io.EOF
	}}}
	if err := c.serve(s.handler); err != nil {
		return nil, err
	}
	return connect.NewResponse(&texts.Text{Text: c.Last}), nil
}

func (s *service) Both(ctx context.Context, stream *connect.BidiStream[texts.Text, texts.Text]) error {
	next := func() (string, error) {
		m, err := stream.Receive()
		return m.GetText(), err
	}
	return (&call{ctx: ctx, Messages: rpctest.Messages{Next: next, Out: out(stream.Send)}}).serve(s.handler)
}

func out(send func(*texts.Text) error) func(string) error {
	return func(text string) error { return send(&texts.Text{Text: text}) }
}
