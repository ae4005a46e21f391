package grpclimit_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// health is the service of the examples.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	handle func(ctx context.Context, service string) error
}

func (h health) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if h.handle != nil {
		if err := h.handle(ctx, r.GetService()); err != nil {
			return nil, err
		}
	}
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
}

func (h health) Watch(_ *grpc_health_v1.HealthCheckRequest, s grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	return s.Send(&grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING})
}

// serveHealth starts a server whose health service calls handle.
func serveHealth(handle func(context.Context, string) error, opts ...grpc.ServerOption) (addr string, stop func()) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer(opts...)
	grpc_health_v1.RegisterHealthServer(s, health{handle: handle})
	done := make(chan error)
	go func() { done <- s.Serve(listener) }()
	return listener.Addr().String(), func() {
		s.Stop()
		<-done
	}
}

func listen(opts ...grpc.ServerOption) (addr string, stop func()) { return serveHealth(nil, opts...) }

func dial(addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	cc, err := grpc.NewClient(addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		panic(err)
	}
	return cc
}

// start starts a server and connects to it.
func start(opts ...grpc.ServerOption) (*grpc.ClientConn, func()) {
	addr, stop := listen(opts...)
	cc := dial(addr)
	return cc, func() {
		_ = cc.Close()
		stop()
	}
}

// request calls the health service for a name and prints the code of the answer.
func request(addr, service string) {
	cc := dial(addr)
	defer cc.Close() //nolint:errcheck // of an example
	_, err := grpc_health_v1.NewHealthClient(cc).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{Service: service})
	fmt.Println(status.Code(err))
}

func perMinute(quota int64) *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(quota)}}}}))
}

func ExampleDecisionFrom() {
	addr, stop := serveHealth(func(ctx context.Context, _ string) error {
		d, _ := grpclimit.DecisionFrom(ctx)
		fmt.Println(d.Remaining, "calls are left")
		return nil
	}, grpclimit.ServerOptions(perMinute(5))...)
	defer stop()

	request(addr, "")
	// Output:
	// 4 calls are left
	// OK
}

// The key is a field of the request message.
func ExampleMessage() {
	service := keyfuncs.Func(func(r core.Request) (string, error) {
		m, _ := grpclimit.Message(r).(*grpc_health_v1.HealthCheckRequest)
		return m.GetService(), nil
	})
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "service", Key: service, Limits: []core.Limit{core.PerMinute(1)}}}}))
	addr, stop := listen(grpclimit.ServerOptions(limiter)...)
	defer stop()

	request(addr, "orders")
	request(addr, "users")
	request(addr, "orders")
	// Output:
	// OK
	// OK
	// ResourceExhausted
}

// Only failed calls count.
func ExampleCode() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "failures", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(1)},
		Counts: func(_ core.Request, o core.Outcome) bool { return grpclimit.Code(o) == codes.NotFound },
	}}}))
	addr, stop := serveHealth(func(_ context.Context, service string) error {
		if service != "orders" {
			return status.Error(codes.NotFound, "no such service")
		}
		return nil
	}, grpclimit.ServerOptions(limiter)...)
	defer stop()

	for _, service := range []string{"orders", "orders", "guess", "orders"} {
		request(addr, service)
	}
	// Output:
	// OK
	// OK
	// NotFound
	// ResourceExhausted
}

// A call is charged ten hits before its handler, and what it has really cost after it.
func ExampleSetCost() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "rows", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(100)},
		Cost: func(core.Request) (int64, error) { return 10, nil },
	}}}))
	addr, stop := serveHealth(func(ctx context.Context, _ string) error {
		d, _ := grpclimit.DecisionFrom(ctx)
		fmt.Println(d.Remaining, "rows are left")
		grpclimit.SetCost(ctx, 35) // the rows that the call has read
		return nil
	}, grpclimit.ServerOptions(limiter)...)
	defer stop()

	request(addr, "")
	request(addr, "")
	// Output:
	// 90 rows are left
	// OK
	// 55 rows are left
	// OK
}

// A handler takes hits itself and denies the call.
func ExampleDeny() {
	exports := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "export", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(1)}}}}))
	addr, stop := serveHealth(func(ctx context.Context, service string) error {
		d, err := exports.Take(ctx, 1, core.Hit{Rule: "export", Key: service})
		if err == nil && !d.Allowed {
			return grpclimit.Deny(ctx, d)
		}
		return err
	})
	defer stop()

	request(addr, "orders")
	request(addr, "orders")
	// Output:
	// OK
	// ResourceExhausted
}
