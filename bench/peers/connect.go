package peers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"
)

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
