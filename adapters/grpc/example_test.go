package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// check calls the health service and prints the code of the answer.
func check(ctx context.Context, cc grpc.ClientConnInterface, opts ...grpc.CallOption) error {
	_, err := grpc_health_v1.NewHealthClient(cc).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, opts...)
	fmt.Println(status.Code(err))
	return err
}

func ExamplePerIP() {
	cc, stop := start(grpclimit.PerIP(1, time.Minute)...)
	defer stop()

	_ = check(context.Background(), cc)
	_ = check(context.Background(), cc)
	// Output:
	// OK
	// ResourceExhausted
}

// A client reads how long to wait from the details of the error.
func ExampleServerOptions() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerSecond(10), core.PerHour(240)}},
		{Name: "key", Key: keyfuncs.Header("X-Api-Key"), Limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow}}},
	}}))
	cc, stop := start(grpclimit.ServerOptions(limiter)...)
	defer stop()

	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-api-key", "k1")
	_ = check(ctx, cc)
	err := check(ctx, cc)
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			fmt.Println("retry in", d.GetRetryDelay().AsDuration().Round(time.Minute))
		case *errdetails.QuotaFailure:
			fmt.Println(d.GetViolations()[0].GetDescription())
		}
	}
	// Output:
	// OK
	// ResourceExhausted
	// retry in 1h0m0s
	// the limit key allows 1 per 1h
}

// A program that chains interceptors itself needs both.
func ExampleUnaryServerInterceptor() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "method", Key: keyfuncs.Route(), Limits: []core.Limit{core.PerMinute(1)}},
	}}))
	cc, stop := start(
		grpc.ChainUnaryInterceptor(grpclimit.UnaryServerInterceptor(limiter)),
		grpc.ChainStreamInterceptor(grpclimit.StreamServerInterceptor(limiter)),
	)
	defer stop()

	_ = check(context.Background(), cc)
	_ = check(context.Background(), cc)
	// Output:
	// OK
	// ResourceExhausted
}

func ExampleStreamServerInterceptor() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(1)}},
	}}))
	cc, stop := start(grpc.ChainStreamInterceptor(grpclimit.StreamServerInterceptor(limiter)))
	defer stop()

	for range 2 {
		watch, err := grpc_health_v1.NewHealthClient(cc).Watch(context.Background(), &grpc_health_v1.HealthCheckRequest{})
		if err == nil {
			_, err = watch.Recv()
		}
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// ResourceExhausted
}

// Each message counts that a client sends in a stream.
func ExamplePerMessage() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerSecond(100)}},
	}}))
	server := grpc.NewServer(grpclimit.ServerOptions(limiter, grpclimit.PerMessage())...)
	defer server.Stop()
}

func ExampleOnDenied() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(1)}},
	}}))
	cc, stop := start(grpclimit.ServerOptions(limiter, grpclimit.OnDenied(func(_ context.Context, method string, d core.Decision) error {
		return status.Errorf(codes.ResourceExhausted, "%s: %v", method, d.Reason)
	}))...)
	defer stop()

	_ = check(context.Background(), cc)
	fmt.Println(status.Convert(check(context.Background(), cc)).Message())
	// Output:
	// OK
	// ResourceExhausted
	// /grpc.health.v1.Health/Check: over limit
}

// A client sends no more than the server allows it.
func ExampleDialOptions() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "method", Key: keyfuncs.Route(), Limits: []core.Limit{core.PerMinute(1)}},
	}}))
	addr, stop := listen()
	defer stop()
	cc := dial(addr, grpclimit.DialOptions(limiter)...)
	defer cc.Close() //nolint:errcheck // of an example

	_ = check(context.Background(), cc)
	_ = check(context.Background(), cc) // is not sent
	// Output:
	// OK
	// ResourceExhausted
}

// A call waits for its turn, for at most two seconds and not longer than its context.
func ExampleDialOptions_waiting() {
	limiter := core.Must(core.New(core.Config{
		MaxWait: 2 * time.Second,
		Rules: []core.Rule{{
			Name: "method", Key: keyfuncs.Route(),
			Limits: []core.Limit{{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow}},
		}},
	}))
	addr, stop := listen()
	defer stop()
	cc := dial(addr, grpclimit.DialOptions(limiter)...)
	defer cc.Close() //nolint:errcheck // of an example

	_ = check(context.Background(), cc)
	_ = check(context.Background(), cc) // is sent a second later

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = check(ctx, cc) // fails at once: its deadline comes before its turn
	// Output:
	// OK
	// OK
	// ResourceExhausted
}

// The error tells whether the client's own limiter has denied the call.
func ExampleDeniedError() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "all", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(0)}},
	}}))
	addr, stop := listen()
	defer stop()
	cc := dial(addr, grpclimit.DialOptions(limiter)...)
	defer cc.Close() //nolint:errcheck // of an example

	err := check(context.Background(), cc)
	var denied *grpclimit.DeniedError
	if errors.As(err, &denied) {
		fmt.Println("not sent:", denied.Method, denied.Decision.Reason)
	}
	// Output:
	// ResourceExhausted
	// not sent: /grpc.health.v1.Health/Check over limit
}

func ExampleUnaryClientInterceptor() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "all", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(1)}},
	}}))
	addr, stop := listen()
	defer stop()
	cc := dial(addr,
		grpc.WithChainUnaryInterceptor(grpclimit.UnaryClientInterceptor(limiter)),
		grpc.WithChainStreamInterceptor(grpclimit.StreamClientInterceptor(limiter)),
	)
	defer cc.Close() //nolint:errcheck // of an example

	_ = check(context.Background(), cc)
	_ = check(context.Background(), cc)
	// Output:
	// OK
	// ResourceExhausted
}

func ExampleStreamClientInterceptor() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "all", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(0)}},
	}}))
	addr, stop := listen()
	defer stop()
	cc := dial(addr, grpc.WithChainStreamInterceptor(grpclimit.StreamClientInterceptor(limiter)))
	defer cc.Close() //nolint:errcheck // of an example

	_, err := grpc_health_v1.NewHealthClient(cc).Watch(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	fmt.Println(status.Code(err))
	// Output:
	// ResourceExhausted
}
