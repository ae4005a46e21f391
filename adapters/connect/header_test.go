package connectlimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// A rule sees the header that the handler has set in its response.
func TestAnOutcomeHasTheHeaderOfTheResponse(t *testing.T) {
	seen := make(chan string, 1)
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(9)}, Counts: func(_ core.Request, o core.Outcome) bool {
		seen <- o.Header("X-Kind")
		return true
	}}}}))
	mux := http.NewServeMux()
	mux.Handle("/a.B/C", connect.NewUnaryHandler("/a.B/C", func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
		out := connect.NewResponse(&emptypb.Empty{})
		out.Header().Set("X-Kind", "cached")
		return out, nil
	}, connect.WithInterceptors(connectlimit.Interceptor(l))))
	s := httptest.NewServer(mux)
	defer s.Close()
	client := connect.NewClient[emptypb.Empty, emptypb.Empty](s.Client(), s.URL+"/a.B/C")
	if _, err := client.CallUnary(t.Context(), connect.NewRequest(&emptypb.Empty{})); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != "cached" {
		t.Errorf("the rule saw %q", got)
	}
}
