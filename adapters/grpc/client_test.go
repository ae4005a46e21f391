package grpclimit_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// A key function of a client reads the message that is to be sent.
func TestTheMessageOfAClientsCall(t *testing.T) {
	var got any
	l := oneBy(keyfuncs.Func(func(r core.Request) (string, error) {
		got = grpclimit.Message(r)
		return "", nil
	}))
	sent := wrapperspb.String("hello")
	err := grpclimit.UnaryClientInterceptor(l)(context.Background(), "/a.B/C", sent, nil, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil })
	if err != nil || got != sent {
		t.Errorf("the key function reads %v, want %v; %v", got, sent, err)
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

// A panic while a client's stream is opened ends it, with the code Internal.
func TestAPanicWhileAClientsStreamIsOpened(t *testing.T) {
	var got []codes.Code
	l := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(9)}, Counts: func(_ core.Request, o core.Outcome) bool {
			got = append(got, grpclimit.Code(o))
			return true
		}},
	}}))
	open := grpclimit.StreamClientInterceptor(l)
	for range 2 {
		func() {
			defer func() {
				if v := recover(); v != "opening" {
					t.Errorf("the panic is %v", v)
				}
			}()
			_, err := open(context.Background(), &grpc.StreamDesc{}, nil, "/a.B/C",
				func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
					panic("opening")
				})
			t.Errorf("no panic, but %v", err)
		}()
	}
	if len(got) != 2 || got[0] != codes.Internal || got[1] != codes.Internal {
		t.Errorf("the outcomes have the codes %v, want two of Internal", got)
	}
}
