package connectlimit_test

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts/textsconnect"
	"github.com/floodgate-go/floodgate/adapters/internal/rpctest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// toldOf returns a limiter that reports the outcome of each call.
func toldOf(quota int64) (*core.Limiter, chan core.Outcome) {
	outcomes := make(chan core.Outcome, 10)
	return core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(quota)},
		Counts: func(_ core.Request, o core.Outcome) bool {
			outcomes <- o
			return true
		},
	}}})), outcomes
}

// lasting is a context that never ends, and is none of package context.
type lasting struct{ context.Context }

func (lasting) Done() <-chan struct{} { return forever }

var forever = make(chan struct{})

// A client's stream that has been read to its end leaves nothing behind on its context, which may last as long
// as the process: TestMain would find it.
func TestAStreamThatHasEndedLeavesItsContext(t *testing.T) {
	l, outcomes := toldOf(9)
	_, handler := textsconnect.NewTextsHandler(&service{handler: func(c rpctest.Call) error { return c.Send("one") }})
	server := httptest.NewServer(handler)
	defer server.Close()
	client := textsconnect.NewTextsClient(server.Client(), server.URL, connect.WithInterceptors(connectlimit.Interceptor(l)))
	stream, err := client.Down(lasting{context.Background()}, connect.NewRequest(&texts.Text{}))
	if err != nil {
		t.Fatal(err)
	}
	for stream.Receive() {
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil {
		t.Error(err)
	}
	if o := <-outcomes; o.Status != 200 {
		t.Errorf("the outcome is %+v", o)
	}
}

// Receive tells why a client's stream was denied, and CloseRequest does not. So it is if the server denies a stream.
func TestCloseRequestOfADeniedStream(t *testing.T) {
	_, handler := textsconnect.NewTextsHandler(echo{})
	server := httptest.NewServer(handler)
	defer server.Close()
	l, _ := toldOf(0)
	stream := textsconnect.NewTextsClient(server.Client(), server.URL, connect.WithInterceptors(connectlimit.Interceptor(l))).Both(context.Background())
	if err := stream.CloseRequest(); err != nil {
		t.Errorf("CloseRequest: %v", err)
	}
	var denied *connectlimit.DeniedError
	if _, err := stream.Receive(); !errors.As(err, &denied) {
		t.Errorf("Receive: %v", err)
	}
	if err := stream.CloseResponse(); err != nil {
		t.Errorf("CloseResponse: %v", err)
	}
}

// The rule sees the header that the handler of a stream has set.
func TestAnOutcomeOfAStreamHasItsHeader(t *testing.T) {
	l, outcomes := toldOf(9)
	_, handler := textsconnect.NewTextsHandler(kinds{}, connect.WithInterceptors(connectlimit.Interceptor(l)))
	server := httptest.NewServer(handler)
	defer server.Close()
	stream := textsconnect.NewTextsClient(server.Client(), server.URL).Up(context.Background())
	if _, err := stream.CloseAndReceive(); err != nil {
		t.Fatal(err)
	}
	if got := (<-outcomes).Header("X-Kind"); got != "cached" {
		t.Errorf("the rule sees %q", got)
	}
}

// kinds is a service whose streams have a header of their own.
type kinds struct {
	textsconnect.UnimplementedTextsHandler
}

func (kinds) Up(_ context.Context, stream *connect.ClientStream[texts.Text]) (*connect.Response[texts.Text], error) {
	stream.Conn().ResponseHeader().Set("X-Kind", "cached")
	for stream.Receive() {
	}
	return connect.NewResponse(&texts.Text{}), stream.Err()
}

// If a handler returns the error of a context, the outcome is that of a canceled call.
func TestAHandlerReturnsTheErrorOfAContext(t *testing.T) {
	for _, returned := range []error{context.Canceled, context.DeadlineExceeded, io.ErrUnexpectedEOF} {
		l, outcomes := toldOf(9)
		client, stop := start(func(context.Context, string) error { return returned }, connectlimit.Interceptor(l))
		if _, err := client.Once(context.Background(), connect.NewRequest(&texts.Text{})); err == nil {
			t.Errorf("%v: no error", returned)
		}
		if o := <-outcomes; o.Canceled == errors.Is(returned, io.ErrUnexpectedEOF) {
			t.Errorf("%v: the outcome is %+v", returned, o)
		}
		stop()
	}
}

// answerless is an interceptor whose calls have neither an answer nor an error.
type answerless struct{ connect.Interceptor }

func (answerless) WrapUnary(connect.UnaryFunc) connect.UnaryFunc {
	return func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, nil }
}

// A call without an answer is Connect's to report: it is no panic of the limiter.
func TestACallWithoutAnAnswer(t *testing.T) {
	l, outcomes := toldOf(9)
	client := textsconnect.NewTextsClient(nil, "http://example.test", connect.WithInterceptors(connectlimit.Interceptor(l), answerless{}))
	if _, err := client.Once(context.Background(), connect.NewRequest(&texts.Text{})); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("the error is %v", err)
	}
	if o := <-outcomes; o.Status != 200 {
		t.Errorf("the outcome is %+v", o)
	}
}
