package peers

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/emptypb"
)

// grpcRecorder is the stream of a call, which keeps the last header.
type grpcRecorder struct{ header metadata.MD }

func (*grpcRecorder) Method() string { return grpc_health_v1.Health_Check_FullMethodName }

func (s *grpcRecorder) SetHeader(md metadata.MD) error {
	s.header = md
	return nil
}

func (*grpcRecorder) SendHeader(metadata.MD) error { return nil }
func (*grpcRecorder) SetTrailer(metadata.MD) error { return nil }

// health is a service whose handler does nothing.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (health) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

// ServeGRPC returns what serves n unary calls of one address behind an interceptor, or behind
// none: what a server does between decoding the request and encoding the answer.
func ServeGRPC(limit grpc.UnaryServerInterceptor) func(n int) {
	call := callGRPC(limit, "192.0.2.1")
	return func(n int) {
		for range n {
			_ = call()
		}
	}
}

// callGRPC returns a unary call from an address.
func callGRPC(limit grpc.UnaryServerInterceptor, address string) func() error {
	ctx := grpc.NewContextWithServerTransportStream(context.Background(), &grpcRecorder{})
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 99}})
	ctx = metadata.NewIncomingContext(ctx, metadata.MD{":authority": {"api.example"}, "content-type": {"application/grpc"}, "user-agent": {"grpc-go"}})
	check := grpc_health_v1.Health_ServiceDesc.Methods[0].Handler
	decode := func(any) error { return nil }
	return func() error {
		_, err := check(health{}, ctx, decode, limit)
		return err
	}
}

const connectProcedure = "/bench.v1.Empties/Empty"

// Connect returns a handler of a unary call behind an interceptor, or behind none.
func Connect(limit connect.Interceptor) http.Handler {
	return connect.NewUnaryHandler(connectProcedure, func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
		return connect.NewResponse(&emptypb.Empty{}), nil
	}, connect.WithInterceptors(limit))
}

// ConnectCall returns a unary call from an address.
func ConnectCall(address string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, connectProcedure, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = address + ":99"
	return r
}
