package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
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
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func oneBy(key core.KeyFunc) *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{core.PerHour(1)}}}}))
}

// A client makes up the names of methods that only the UnknownServiceHandler serves: they
// share one quota.
func TestUnknownMethodsHaveNoRoute(t *testing.T) {
	listener := bufconn.Listen(1 << 16)
	opts := append(grpclimit.ServerOptions(oneBy(keyfuncs.Route())), grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(codes.NotFound, "") }))
	s := grpc.NewServer(opts...)
	done := make(chan error)
	go func() { done <- s.Serve(listener) }()
	defer func() { s.Stop(); <-done }()
	cc, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close() //nolint:errcheck // of a test
	got := map[codes.Code]int{}
	for i := range 5 {
		err := cc.Invoke(context.Background(), fmt.Sprintf("/made.Up/Method%d", i), &emptypb.Empty{}, &emptypb.Empty{})
		got[status.Code(err)]++
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

// lingering is a stream whose message arrives after its handler has returned.
type lingering struct {
	grpc.ServerStream
	arrives chan struct{}
	first   bool
}

func (*lingering) Context() context.Context       { return context.Background() }
func (*lingering) SetHeader(metadata.MD) error    { return nil }
func (*lingering) SetTrailer(metadata.MD)         {}
func (*lingering) SendMsg(any) error              { return nil }
func (*lingering) SendHeader(_ metadata.MD) error { return nil }

func (s *lingering) RecvMsg(any) error {
	if s.first {
		s.first = false
		return nil
	}
	if _, open := <-s.arrives; !open {
		return io.EOF
	}
	return nil
}

// A goroutine that a handler leaves behind receives a message: its outcome is that of the
// stream, by which its hit is given back.
func TestAMessageAfterTheHandler(t *testing.T) {
	never := func(core.Request, core.Outcome) bool { return false }
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Counts: never, Limits: []core.Limit{core.PerMinute(10)}}}}))
	stream := &lingering{arrives: make(chan struct{}), first: true}
	left := make(chan struct{})
	err := grpclimit.StreamServerInterceptor(l, grpclimit.PerMessage())(nil, stream, &grpc.StreamServerInfo{FullMethod: "/a.B/C", IsClientStream: true},
		func(_ any, s grpc.ServerStream) error {
			go func() {
				defer close(left)
				for s.RecvMsg(nil) == nil {
				}
			}()
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		stream.arrives <- struct{}{}
	}
	close(stream.arrives)
	<-left
	if d, err := l.Peek(context.Background(), 0, core.Hit{Rule: "r"}); err != nil || d.Remaining != 10 {
		t.Errorf("%d hits are left, want 10; %v", d.Remaining, err)
	}
}

func TestWhatIsMissing(t *testing.T) {
	for name, make := range map[string]func(){
		"no checker":      func() { grpclimit.ServerOptions(nil) },
		"a nil limiter":   func() { grpclimit.UnaryServerInterceptor((*core.Limiter)(nil)) },
		"no option":       func() { grpclimit.StreamServerInterceptor(oneBy(keyfuncs.Static("")), nil) },
		"a client's":      func() { grpclimit.DialOptions(nil) },
		"a quota below 0": func() { grpclimit.PerIP(-1, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			make()
		}()
	}
}

// An outcome of another adapter has no code.
func TestCodeOfAnotherOutcome(t *testing.T) {
	for status, want := range map[int]codes.Code{200: codes.OK, 304: codes.OK, 404: codes.Unknown, 0: codes.Unknown} {
		if got := grpclimit.Code(core.Outcome{Status: status, Header: func(string) string { return "" }}); got != want {
			t.Errorf("%d: %v, want %v", status, got, want)
		}
	}
}

// A program finds the error of its OnDenied in that of the call.
func TestTheErrorOfOnDeniedIsFound(t *testing.T) {
	own := errors.New("own")
	unary := grpclimit.UnaryClientInterceptor(oneBy(keyfuncs.Static("")), grpclimit.OnDenied(func(context.Context, string, core.Decision) error { return own }))
	sent := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	call := func() error { return unary(t.Context(), "/a.B/C", nil, nil, nil, sent) }
	if err := call(); err != nil {
		t.Fatal(err)
	}
	if err := call(); !errors.Is(err, own) {
		t.Errorf("%v is not the error of OnDenied", err)
	}
}

// The details of an error name the rule and the limit, which have names of their own.
func TestTheDetailsNameTheRuleAndTheLimit(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "tenant", Limits: []core.Limit{{Name: "per-hour", Quota: 0, Window: time.Hour}}}}}))
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "tenant", Key: "k"})
	if err != nil || d.Allowed {
		t.Fatal(d, err)
	}
	for _, detail := range status.Convert(grpclimit.Deny(context.Background(), d)).Details() {
		if q, ok := detail.(*errdetails.QuotaFailure); ok {
			if v := q.GetViolations()[0]; v.GetSubject() != "rule:tenant" || v.GetQuotaId() != "per-hour" || v.GetQuotaValue() != 0 {
				t.Errorf("violation %v", v)
			}
			return
		}
	}
	t.Error("no detail has the violations")
}

// written is a server's stream that records its metadata. Each message is the same.
type written struct {
	grpc.ServerStream
	header, trailer metadata.MD
}

func (*written) Context() context.Context { return context.Background() }
func (*written) RecvMsg(any) error        { return nil }

func (s *written) SetHeader(md metadata.MD) error {
	s.header = metadata.Join(s.header, md)
	return nil
}

func (s *written) SetTrailer(md metadata.MD) { s.trailer = metadata.Join(s.trailer, md) }

func receiveTwo(_ any, s grpc.ServerStream) error {
	for range 2 {
		if err := s.RecvMsg(nil); err != nil {
			return err
		}
	}
	return nil
}

// The fields of a denied message are in the trailer, because the handler may have sent the header before.
// A hook may set a field twice.
func TestTheFieldsOfADeniedMessage(t *testing.T) {
	l := core.Must(core.New(core.Config{
		Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(1)}}},
		Hooks: hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial {
			return core.Denial{Status: 429, Header: []core.Header{{Name: "X-Why", Value: "a"}, {Name: "x-why", Value: "b"}}}
		}},
	}))
	s := &written{}
	err := grpclimit.StreamServerInterceptor(l, grpclimit.PerMessage())(nil, s, &grpc.StreamServerInfo{FullMethod: "/a.B/C", IsClientStream: true}, receiveTwo)
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatal(err)
	}
	if got := s.trailer.Get("x-why"); !slices.Equal(got, []string{"a", "b"}) || len(s.header.Get("x-why")) != 0 {
		t.Errorf("the trailer has %q, the header %v", got, s.header)
	}
}

// PerMessage is about the messages of clients: a stream that only the server sends counts once, and may hold a slot.
func TestPerMessageOfAStreamOfTheServer(t *testing.T) {
	l := core.Must(inflight.New(inflight.Config{Max: 1, Key: keyfuncs.Static("")}))
	err := grpclimit.StreamServerInterceptor(l, grpclimit.PerMessage())(nil, &written{}, &grpc.StreamServerInfo{FullMethod: "/a.B/C", IsServerStream: true}, receiveTwo)
	if err != nil {
		t.Error(err)
	}
}

// ofMethod is a server's transport of a call.
type ofMethod struct{ grpc.ServerTransportStream }

func (ofMethod) Method() string              { return "/a.B/C" }
func (ofMethod) SetHeader(metadata.MD) error { return nil }

// The hook for a call that the handler denies sees the method and the route.
func TestTheHookOfACallThatTheHandlerDenies(t *testing.T) {
	var path, route string
	l := core.Must(core.New(core.Config{
		Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(0)}}},
		Hooks: hooktest.Funcs{OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
			path, route = r.Path(), r.Route()
			return core.DefaultHooks{}.OnDisallowed(r, d)
		}},
	}))
	d, err := l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	denied := grpclimit.Deny(grpc.NewContextWithServerTransportStream(context.Background(), ofMethod{}), d)
	if status.Code(denied) != codes.ResourceExhausted || path != "/a.B/C" || route != "/a.B/C" {
		t.Errorf("%v; the hook sees the path %q and the route %q", denied, path, route)
	}
}
