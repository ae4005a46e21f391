package grpclimit_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

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
