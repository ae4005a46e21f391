package connectlimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts/textsconnect"
	"github.com/floodgate-go/floodgate/adapters/internal/rpctest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func oneBy(key core.KeyFunc) *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{core.PerHour(1)}}}}))
}

// Handlers return errors that are one for all calls. The interceptor does not change them.
func TestAnErrorOfAllCallsStaysAsItIs(t *testing.T) {
	shared := connect.NewError(connect.CodeNotFound, errors.New("not found"))
	client, stop := start(func(context.Context, string) error { return shared }, perMinute(100))
	defer stop()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := client.Once(context.Background(), connect.NewRequest(&texts.Text{}))
			var failed *connect.Error
			if !errors.As(err, &failed) || len(failed.Meta().Values("Ratelimit")) != 1 {
				t.Errorf("%v, with %v", err, failed.Meta())
			}
		})
	}
	wg.Wait()
	if len(shared.Meta()) != 0 {
		t.Errorf("the error of the handler has got %v", shared.Meta())
	}
}

// curl sends a call without any library of Connect.
func curl(t *testing.T, method, url, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	b, _ := io.ReadAll(resp.Body)
	return resp, string(b)
}

// In the protocol Connect, a denied call is a response of HTTP with status 429.
func TestADeniedCallInHTTP(t *testing.T) {
	_, handler := textsconnect.NewTextsHandler(echo{}, connect.WithInterceptors(connectlimit.Interceptor(oneBy(keyfuncs.Query("message")))))
	server := httptest.NewServer(handler)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	post, get := server.URL+textsconnect.TextsOnceProcedure, server.URL+textsconnect.TextsOnceProcedure+"?encoding=json&message=%7B%22text%22%3A%22a%22%7D"
	for _, row := range []struct{ method, url, body string }{{http.MethodPost, post, `{"text":"a"}`}, {http.MethodGet, get, ""}} {
		if resp, body := curl(t, row.method, row.url, row.body); resp.StatusCode != http.StatusOK || body != `{"text":"a"}` || resp.Header.Get("Ratelimit") == "" {
			t.Errorf("%s: %d %s %v", row.method, resp.StatusCode, body, resp.Header)
		}
		resp, body := curl(t, row.method, row.url, row.body)
		if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, `"resource_exhausted"`) || !strings.Contains(body, "google.rpc.RetryInfo") ||
			resp.Header.Get("Retry-After") == "" || resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %v", row.method, resp.StatusCode, body, resp.Header)
		}
	}
}

// A response 304 is a success.
func TestNotModified(t *testing.T) {
	outcomes := make(chan core.Outcome, 1)
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(5)},
		Counts: func(_ core.Request, o core.Outcome) bool {
			outcomes <- o
			return true
		},
	}}}))
	_, handler := textsconnect.NewTextsHandler(echo{handle: func(context.Context, string) error { return connect.NewNotModifiedError(nil) }},
		connect.WithInterceptors(connectlimit.Interceptor(l)))
	server := httptest.NewServer(handler)
	defer server.Close()
	client := textsconnect.NewTextsClient(server.Client(), server.URL, connect.WithHTTPGet())
	_, err := client.Once(context.Background(), connect.NewRequest(&texts.Text{}))
	if o := <-outcomes; !connect.IsNotModifiedError(err) || o.Status != 304 || connectlimit.Code(o) != 0 {
		t.Errorf("%v, %+v", err, o)
	}
}

// A key function of a client panics on a stream: the stream does not go on without a decision.
func TestAPanicOnAClientsStream(t *testing.T) {
	_, handler := textsconnect.NewTextsHandler(echo{})
	server := httptest.NewServer(handler)
	defer server.Close()
	l := oneBy(keyfuncs.Func(func(core.Request) (string, error) { panic("the key function's") }))
	client := textsconnect.NewTextsClient(server.Client(), server.URL, connect.WithInterceptors(connectlimit.Interceptor(l)))
	stream := client.Up(context.Background())
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = stream.Send(&texts.Text{})
	}()
	if err := stream.Send(&texts.Text{}); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("the second message: %v", err)
	}
	if _, err := stream.CloseAndReceive(); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("the end: %v", err)
	}
}

func TestWhatIsMissing(t *testing.T) {
	for name, make := range map[string]func(){
		"no checker":      func() { connectlimit.Interceptor(nil) },
		"a nil limiter":   func() { connectlimit.Interceptor((*core.Limiter)(nil)) },
		"no option":       func() { connectlimit.Interceptor(oneBy(keyfuncs.Static("")), nil) },
		"a quota below 0": func() { connectlimit.PerIP(-1, 1) },
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

// asking returns the address of a server whose limiter calls see for each request.
func asking(t *testing.T, see func(core.Request)) string {
	t.Helper()
	key := keyfuncs.Func(func(r core.Request) (string, error) {
		see(r)
		return "", nil
	})
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{core.PerHour(100)}}}}))
	_, handler := textsconnect.NewTextsHandler(echo{}, connect.WithInterceptors(connectlimit.Interceptor(l)))
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return server.URL
}

// A header is binary if its name ends in -bin, also if it has no other part.
func TestWhichHeadersAreDecoded(t *testing.T) {
	const raw, encoded = "\x00\xff", "AP8"
	names := map[string]string{"-bin": raw, "-BIN": raw, "X-Token-Bin": raw, "bin": encoded, "X-Bin-X": encoded, "Xbin": encoded}
	url := asking(t, func(r core.Request) {
		for name, want := range names {
			if got := r.HeaderValues(name); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
	r := connect.NewRequest(&texts.Text{})
	for name := range names {
		r.Header().Set(name, encoded)
	}
	if _, err := textsconnect.NewTextsClient(http.DefaultClient, url).Once(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// A binary header that cannot be decoded is read as it is: a client cannot leave its key out that way.
func TestABinaryHeaderThatCannotBeDecoded(t *testing.T) {
	var got []string
	url := asking(t, func(r core.Request) { got = r.HeaderValues("X-Token-Bin") })
	r := connect.NewRequest(&texts.Text{})
	r.Header().Set("X-Token-Bin", "%%%")
	if _, err := textsconnect.NewTextsClient(http.DefaultClient, url).Once(t.Context(), r); err != nil || !slices.Equal(got, []string{"%%%"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// A GET has the message and its encoding in the query, in the order of their names. A POST has no query.
func TestTheQueryOfACall(t *testing.T) {
	var raw string
	var parameters []string
	url := asking(t, func(r core.Request) {
		message, found := r.Query("message")
		if raw, parameters = r.RawQuery(), []string{message}; !found {
			parameters = nil
		}
	})
	for _, row := range []struct {
		method, query, body, want string
		message                   []string
	}{
		{http.MethodGet, "?message=%7B%22text%22:%22a+b%22%7D&encoding=json&x=1&message=second", "", "encoding=json&message=%7B%22text%22%3A%22a+b%22%7D&message=second&x=1", []string{`{"text":"a b"}`}},
		{http.MethodPost, "", `{"text":"a"}`, "", nil},
	} {
		raw = "none"
		if resp, body := curl(t, row.method, url+textsconnect.TextsOnceProcedure+row.query, row.body); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", row.method, resp.StatusCode, body)
		}
		if raw != row.want || !slices.Equal(parameters, row.message) {
			t.Errorf("%s: the query is %q, want %q; the message %q, want %q", row.method, raw, row.want, parameters, row.message)
		}
	}
}

// Retry-After and Cache-Control have one line: the hook's takes the place of the decision's.
func TestAHookReplacesRetryAfter(t *testing.T) {
	hooks := hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial {
		return core.Denial{Status: 429, Header: []core.Header{
			{Name: "retry-after", Value: "7"}, {Name: "cache-control", Value: "private"}, {Name: "x-why", Value: "a"}, {Name: "X-Why", Value: "b"},
		}}
	}}
	l := core.Must(core.New(core.Config{Hooks: hooks, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(1)}}}}))
	_, handler := textsconnect.NewTextsHandler(echo{}, connect.WithInterceptors(connectlimit.Interceptor(l)))
	server := httptest.NewServer(handler)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	_, _ = curl(t, http.MethodPost, server.URL+textsconnect.TextsOnceProcedure, `{"text":"a"}`)
	resp, _ := curl(t, http.MethodPost, server.URL+textsconnect.TextsOnceProcedure, `{"text":"a"}`)
	for name, want := range map[string][]string{"Retry-After": {"7"}, "Cache-Control": {"private"}, "X-Why": {"a", "b"}} {
		if got := resp.Header.Values(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A message that is denied has its fields in the trailer, where Cache-Control may not be.
func TestTheTrailerOfADeniedMessage(t *testing.T) {
	_, handler := textsconnect.NewTextsHandler(&service{handler: func(c rpctest.Call) error {
		for {
			if _, err := c.Receive(); err != nil {
				return err
			}
		}
	}}, connect.WithInterceptors(connectlimit.Interceptor(oneBy(keyfuncs.Static("")), connectlimit.PerMessage())))
	server := httptest.NewServer(handler)
	defer server.Close()
	stream := textsconnect.NewTextsClient(server.Client(), server.URL).Up(t.Context())
	for range 2 {
		_ = stream.Send(&texts.Text{})
	}
	_, err := stream.CloseAndReceive()
	var failed *connect.Error
	if !errors.As(err, &failed) || failed.Code() != connect.CodeResourceExhausted {
		t.Fatal(err)
	}
	if got := failed.Meta(); got.Get("Retry-After") == "" || got.Get("Cache-Control") != "" {
		t.Errorf("the metadata is %v, want Retry-After and no Cache-Control", got)
	}
}

// A client's stream that the program closes before its end was canceled.
func TestAStreamThatTheProgramCloses(t *testing.T) {
	outcomes := make(chan core.Outcome, 2)
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(5)},
		Counts: func(_ core.Request, o core.Outcome) bool {
			outcomes <- o
			return true
		},
	}}}))
	_, handler := textsconnect.NewTextsHandler(&service{handler: func(c rpctest.Call) error { return c.Send("one") }})
	server := httptest.NewServer(handler)
	defer server.Close()
	client := textsconnect.NewTextsClient(server.Client(), server.URL, connect.WithInterceptors(connectlimit.Interceptor(l)))
	for toTheEnd, want := range map[bool]core.Outcome{true: {Status: 200}, false: {Status: core.StatusCanceled, Canceled: true}} {
		stream, err := client.Down(context.Background(), connect.NewRequest(&texts.Text{}))
		if err != nil {
			t.Fatal(err)
		}
		for stream.Receive() && toTheEnd {
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
		select {
		case o := <-outcomes:
			if o.Status != want.Status || o.Canceled != want.Canceled {
				t.Errorf("read to the end: %t: the outcome is %+v, want %+v", toTheEnd, o, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("read to the end: %t: the limiter was not told the outcome", toTheEnd)
		}
	}
	if len(outcomes) != 0 {
		t.Errorf("a second outcome: %+v", <-outcomes)
	}
}
