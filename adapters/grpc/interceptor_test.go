package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func oneBy(key core.KeyFunc) *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{core.PerHour(1)}}}}))
}

// A client makes up the names of methods that only the UnknownServiceHandler serves: they
// share one quota.
func TestUnknownMethodsHaveNoRoute(t *testing.T) {
	listener := bufconn.Listen(1 << 16)
	denied := grpclimit.OnDenied(func(_ context.Context, method string, _ core.Decision) error {
		return status.Error(codes.ResourceExhausted, method)
	})
	unknown := grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(codes.NotFound, "") })
	opts := append(grpclimit.ServerOptions(oneBy(keyfuncs.Route()), denied), unknown)
	s := grpc.NewServer(opts...)
	done := make(chan error)
	go func() { done <- s.Serve(listener) }()
	defer func() { s.Stop(); <-done }()
	byTarget := inflight.Config{Max: 1, Key: func(dst []byte, r core.Request) ([]byte, error) {
		if r.RemoteAddr() != "passthrough:///x" || !strings.HasPrefix(r.Path(), "/made.Up/Method") {
			t.Errorf("a client's request is for %q, %q", r.RemoteAddr(), r.Path())
		}
		return dst, nil
	}}
	cc, err := grpc.NewClient("passthrough:///x", append(grpclimit.DialOptions(core.Must(inflight.New(byTarget))),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close() //nolint:errcheck // of a test
	got := map[codes.Code]int{}
	for i := range 5 {
		method := fmt.Sprintf("/made.Up/Method%d", i)
		err := cc.Invoke(context.Background(), method, &emptypb.Empty{}, &emptypb.Empty{})
		if got[status.Code(err)]++; status.Code(err) != codes.NotFound && status.Convert(err).Message() != method {
			t.Errorf("%s: %v", method, err)
		}
	}
	if got[codes.NotFound] != 1 || got[codes.ResourceExhausted] != 4 {
		t.Errorf("codes and how often each came: %v", got)
	}
}

// A peer without an address of IP, or none at all, has one quota with all of its kind.
func TestPeersWithoutAnAddress(t *testing.T) {
	unary := grpclimit.UnaryServerInterceptor(oneBy(keyfuncs.ClientIP()))
	got := map[codes.Code]int{}
	for _, ctx := range []context.Context{
		context.Background(), peer.NewContext(context.Background(), &peer.Peer{}),
		peer.NewContext(context.Background(), &peer.Peer{Addr: &net.UnixAddr{Name: "@", Net: "unix"}}),
		metadata.NewIncomingContext(context.Background(), metadata.MD{"x-forwarded-for": {"6.6.6.6"}}),
	} {
		_, err := unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, func(context.Context, any) (any, error) { return nil, nil })
		got[status.Code(err)]++
	}
	if got[codes.OK] != 1 || got[codes.ResourceExhausted] != 3 {
		t.Errorf("codes and how often each came: %v", got)
	}
}

// A program finds the error of its OnDenied in that of the call, and the error of the decision.
func TestTheErrorOfOnDeniedIsFound(t *testing.T) {
	own, fault := status.Error(codes.Aborted, "own"), errors.New("fault")
	l := oneBy(func(dst []byte, _ core.Request) ([]byte, error) { return dst, fault })
	unary := grpclimit.UnaryClientInterceptor(l, grpclimit.OnDenied(func(context.Context, string, core.Decision) error { return own }))
	err := unary(t.Context(), "/a.B/C", nil, nil, nil, nil)
	if !errors.Is(err, own) || !errors.Is(err, fault) || status.Code(err) != codes.Aborted || err.Error() != own.Error() {
		t.Errorf("%v is not the error of OnDenied and of the decision", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := unary(ctx, "/a.B/C", nil, nil, nil, nil); status.Convert(err).Message() != "the call was canceled before the limiter allowed it" {
		t.Errorf("a call that was canceled before: %v", err)
	}
	var denied *grpclimit.DeniedError
	if !errors.As(err, &denied) || denied.Method != "/a.B/C" || !errors.Is(denied.Decision.Err, fault) {
		t.Errorf("%+v", denied)
	}
	if denied.Decision.Err = nil; !errors.Is(denied, own) {
		t.Errorf("%v without the error of the decision is not the error of OnDenied", denied)
	}
}

// Many calls may share the options that a program passes: an interceptor writes nothing behind them.
func TestTheOptionsOfAClientsStreamAreItsCallers(t *testing.T) {
	l := core.Must(inflight.New(inflight.Config{Max: 1, Key: keyfuncs.Static("")}))
	shared := make([]grpc.CallOption, 1, 2)
	shared[0] = grpc.WaitForReady(true)
	var passed []grpc.CallOption
	_, err := grpclimit.StreamClientInterceptor(l)(context.Background(), &grpc.StreamDesc{}, nil, "/a.B/C",
		func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			passed = opts
			return nil, nil
		}, shared...)
	if err != nil || len(passed) != 2 || passed[0] != shared[0] {
		t.Errorf("the stream is opened with %v; %v", passed, err)
	}
	if behind := shared[:2][1]; behind != nil {
		t.Errorf("%T is written behind the options of the caller", behind)
	}
}

// A panic while a client's call is sent, or its stream opened, ends it with the code Internal.
func TestAPanicOnTheClient(t *testing.T) {
	var got []codes.Code
	l := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(9)}, Counts: func(_ core.Request, o core.Outcome) bool {
			got = append(got, grpclimit.Code(o))
			return true
		}},
	}}))
	for name, call := range map[string]func() error{
		"a call": func() error {
			return grpclimit.UnaryClientInterceptor(l)(t.Context(), "/a.B/C", nil, nil, nil,
				func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { panic("opening") })
		},
		"a stream": func() error {
			_, err := grpclimit.StreamClientInterceptor(l)(t.Context(), &grpc.StreamDesc{}, nil, "/a.B/C",
				func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
					panic("opening")
				})
			return err
		},
	} {
		got = nil
		func() {
			defer func() {
				if v := recover(); v != "opening" || !slices.Equal(got, []codes.Code{codes.Internal}) {
					t.Errorf("%s: the panic is %v, and the outcomes have the codes %v, want one of Internal", name, v, got)
				}
			}()
			t.Errorf("%s: no panic, but %v", name, call())
		}()
	}
}
