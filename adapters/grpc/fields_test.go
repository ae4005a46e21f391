package grpclimit_test

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

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
		Hooks: core.HookFuncs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial {
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
		Hooks: core.HookFuncs{OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
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
