package compat

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/policy"
)

// health has the two methods of the health service that all tests here call. A call names a user
// in its message; rightUser is one whose calls succeed.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
}

const (
	checkRPC  = "/grpc.health.v1.Health/Check"
	watchRPC  = "/grpc.health.v1.Health/Watch"
	rightUser = "right"
)

type (
	request  = grpc_health_v1.HealthCheckRequest
	response = grpc_health_v1.HealthCheckResponse
)

func (h *health) Check(_ context.Context, r *request) (*response, error) {
	if _, password, _ := strings.Cut(r.GetService(), ":"); password == "wrong" {
		return nil, status.Error(16, "the password is wrong")
	}
	return &response{}, nil
}

func (h *health) Watch(_ *request, s grpc.ServerStreamingServer[response]) error {
	return s.Send(&response{})
}

// rpc is a way to serve the health service behind a checker. call calls a method, with a user and
// metadata (names and values), and returns the code's number and the error's text.
type rpc struct {
	serve   func(t *testing.T, c core.Checker, h *health) (call func(ctx context.Context, method, user string, md ...string) (uint32, string))
	message func(core.Request) any
}

var rpcs = map[string]rpc{
	"gRPC": {message: grpclimit.Message, serve: func(t *testing.T, c core.Checker, h *health) func(context.Context, string, string, ...string) (uint32, string) {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer(grpclimit.ServerOptions(c)...)
		grpc_health_v1.RegisterHealthServer(s, h)
		go func() { _ = s.Serve(listener) }()
		t.Cleanup(s.Stop)
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		client := grpc_health_v1.NewHealthClient(conn)
		return func(ctx context.Context, method, user string, md ...string) (uint32, string) {
			ctx = metadata.AppendToOutgoingContext(ctx, md...)
			in := &request{Service: user}
			var err error
			if method == checkRPC {
				_, err = client.Check(ctx, in)
			} else {
				var stream grpc.ServerStreamingClient[response]
				for stream, err = client.Watch(ctx, in); err == nil; {
					_, err = stream.Recv()
				}
				if errors.Is(err, io.EOF) {
					err = nil
				}
			}
			return uint32(status.Code(err)), status.Convert(err).Message()
		}
	}},
	"Connect": {message: connectlimit.Message, serve: func(t *testing.T, c core.Checker, h *health) func(context.Context, string, string, ...string) (uint32, string) {
		limits := connect.WithInterceptors(connectlimit.Interceptor(c))
		mux := http.NewServeMux()
		mux.Handle(checkRPC, connect.NewUnaryHandler(checkRPC, func(ctx context.Context, r *connect.Request[request]) (*connect.Response[response], error) {
			out, err := h.Check(ctx, r.Msg)
			if err != nil {
				return nil, connect.NewError(connect.Code(status.Code(err)), err)
			}
			return connect.NewResponse(out), nil
		}, limits))
		mux.Handle(watchRPC, connect.NewServerStreamHandler(watchRPC, func(_ context.Context, _ *connect.Request[request], s *connect.ServerStream[response]) error {
			return s.Send(&response{})
		}, limits))
		s := httptest.NewServer(mux)
		t.Cleanup(s.Close)
		return func(ctx context.Context, method, user string, md ...string) (uint32, string) {
			r := connect.NewRequest(&request{Service: user})
			for i := 0; i < len(md); i += 2 {
				r.Header().Add(md[i], md[i+1])
			}
			client := connect.NewClient[request, response](s.Client(), s.URL+method)
			var err error
			if method == checkRPC {
				_, err = client.CallUnary(ctx, r)
			} else {
				var stream *connect.ServerStreamForClient[response]
				if stream, err = client.CallServerStream(ctx, r); err == nil {
					for stream.Receive() {
					}
					err = stream.Err()
					_ = stream.Close()
				}
			}
			if err == nil {
				return 0, ""
			}
			return uint32(connect.CodeOf(err)), err.Error()
		}
	}},
}

// The codes that the tests here name.
const (
	ok                = 0
	invalidArgument   = 3
	resourceExhausted = 8
	unauthenticated   = 16
)

func eachRPC(t *testing.T, test func(t *testing.T, s rpc)) {
	for name, s := range rpcs {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// codes makes calls and fails if their codes are not these.
func codes(t *testing.T, what string, call func(i int) (uint32, string), want ...uint32) {
	t.Helper()
	for i, w := range want {
		if code, text := call(i); code != w {
			t.Errorf("%s, call %d: code %d (%s), want %d", what, i+1, code, text, w)
		}
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAPolicyFileLimitsCalls(t *testing.T) {
	eachRPC(t, func(t *testing.T, s rpc) {
		set, err := policy.Load(writeFile(t, `
policies:
  - name: streams
    match: {paths: [/grpc.health.v1.Health/Watch]}
    limits: 1/h
  - name: by-key
    match: {paths: ["/grpc.health.v1.Health/*"]}
    key: header["X-Api-Key"]
    limits: 3/h
`))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = set.Close() })
		call := s.serve(t, set, &health{})
		by := func(method, key string) func(int) (uint32, string) {
			return func(int) (uint32, string) { return call(t.Context(), method, "", "X-Api-Key", key) }
		}
		codes(t, "a stream", by(watchRPC, "a"), ok, resourceExhausted)
		codes(t, "the rest of the key", by(checkRPC, "a"), ok, ok, resourceExhausted)
		codes(t, "another key", by(checkRPC, "b"), ok, ok, ok, resourceExhausted)
		codes(t, "a stream of another key", by(watchRPC, "c"), resourceExhausted)
	})
}

func TestAGuardOfAMessage(t *testing.T) {
	eachRPC(t, func(t *testing.T, s rpc) {
		guard, err := login.NewGuard(login.Config{Sources: []core.KeyFunc{keyfuncs.Func(func(r core.Request) (string, error) {
			m, _ := s.message(r).(*request)
			user, _, _ := strings.Cut(m.GetService(), ":")
			return user, nil
		})}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = guard.Close() })
		call := s.serve(t, guard, &health{})
		as := func(user string) func(int) (uint32, string) {
			return func(int) (uint32, string) { return call(t.Context(), checkRPC, user) }
		}
		const wrong = unauthenticated
		codes(t, "guesses", as("alice:wrong"), wrong, wrong, wrong, wrong)
		codes(t, "another spelling", as(" ALICE:wrong"), wrong, resourceExhausted)
		codes(t, "the right password, too late", as("alice:right"), resourceExhausted)
		codes(t, "somebody else", as("bob:wrong"), wrong, wrong, wrong, wrong)
		codes(t, "bob's password", as("bob:right"), ok)
		codes(t, "after a success", as("bob:wrong"), wrong, wrong, wrong, wrong, wrong, resourceExhausted)
		codes(t, "no name", as(":wrong"), invalidArgument)
		codes(t, "a stream has no message yet", func(int) (uint32, string) { return call(t.Context(), watchRPC, "carol:wrong") }, invalidArgument)
	})
}
