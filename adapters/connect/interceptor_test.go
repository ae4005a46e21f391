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

// asking returns an interceptor that calls see for each request.
func asking(see func(core.Request)) connect.Interceptor {
	key := keyfuncs.Func(func(r core.Request) (string, error) {
		see(r)
		return "", nil
	})
	return connectlimit.Interceptor(core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{core.PerHour(100)}}}})))
}

// urlOf serves a service behind interceptors.
func urlOf(t *testing.T, h textsconnect.TextsHandler, limits ...connect.Interceptor) string {
	t.Helper()
	_, handler := textsconnect.NewTextsHandler(h, connect.WithInterceptors(limits...))
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return server.URL
}

// clientOf calls a service whose URL it is, behind interceptors of the client.
func clientOf(url string, limits ...connect.Interceptor) textsconnect.TextsClient {
	return textsconnect.NewTextsClient(http.DefaultClient, url, connect.WithInterceptors(limits...))
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

// Handlers return errors that are one for all calls. The interceptor does not change them.
func TestAnErrorOfAllCallsStaysAsItIs(t *testing.T) {
	shared := connect.NewError(connect.CodeNotFound, errors.New("not found"))
	client := clientOf(urlOf(t, echo{handle: func(context.Context, string) error { return shared }}, perMinute(100)))
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

// In the protocol Connect, a denied call is a response of HTTP with status 429. Retry-After and
// Cache-Control have one line: the hook's takes the place of the decision's.
func TestADeniedCallInHTTP(t *testing.T) {
	own := hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial {
		return core.Denial{Status: 429, Header: []core.Header{
			{Name: "retry-after", Value: "7"}, {Name: "cache-control", Value: "private"}, {Name: "x-why", Value: "a"}, {Name: "X-Why", Value: "b"},
		}}
	}}
	for _, hooks := range []core.Hooks{nil, own} {
		l := core.Must(core.New(core.Config{Hooks: hooks, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Query("message"), Limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow}}}}}))
		before := around(func(ctx context.Context, next func(context.Context) error) error {
			err := next(ctx)
			if errors.As(err, new(*connectlimit.DeniedError)) {
				t.Errorf("an interceptor before the limiter gets the error of a client: %v", err)
			}
			return err
		})
		post := urlOf(t, echo{}, before, connectlimit.Interceptor(l)) + textsconnect.TextsOnceProcedure
		get := post + "?encoding=json&message=%7B%22text%22%3A%22a%22%7D"
		for _, row := range []struct{ method, url, body string }{{http.MethodPost, post, `{"text":"a"}`}, {http.MethodGet, get, ""}} {
			if resp, body := curl(t, row.method, row.url, row.body); resp.StatusCode != http.StatusOK || body != `{"text":"a"}` || resp.Header.Get("Ratelimit") == "" {
				t.Errorf("%s: %d %s %v", row.method, resp.StatusCode, body, resp.Header)
			}
			resp, body := curl(t, row.method, row.url, row.body)
			if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, `"resource_exhausted"`) || !strings.Contains(body, "google.rpc.RetryInfo") || resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %d %s %v", row.method, resp.StatusCode, body, resp.Header)
			}
			want := map[string][]string{"Retry-After": {"7"}, "Cache-Control": {"private"}, "X-Why": {"a", "b"}}
			if hooks == nil {
				want = map[string][]string{"Retry-After": {resp.Header.Get("Retry-After")}, "Cache-Control": {"no-store"}}
			}
			for name, lines := range want {
				if got := resp.Header.Values(name); !slices.Equal(got, lines) || lines[0] == "" {
					t.Errorf("%s: %s: %q, want %q", row.method, name, got, lines)
				}
			}
		}
	}
}

// Retry-After and Cache-Control have one line, also if a handler has set them before it denies.
func TestAHandlerThatHasSetTheHeaderDenies(t *testing.T) {
	l := oneBy(keyfuncs.Static(""))
	resp, _ := curl(t, http.MethodPost, urlOf(t, echo{handle: func(ctx context.Context, _ string) error {
		info, _ := connect.CallInfoForHandlerContext(ctx)
		info.ResponseHeader().Set("Retry-After", "99")
		info.ResponseHeader().Set("Cache-Control", "public")
		_, first := l.Take(ctx, 1, core.Hit{Rule: "r"})
		d, second := l.Take(ctx, 1, core.Hit{Rule: "r"})
		return errors.Join(first, second, connectlimit.Deny(ctx, d))
	}})+textsconnect.TextsOnceProcedure, `{"text":"a"}`)
	if retry, cache := resp.Header.Values("Retry-After"), resp.Header.Values("Cache-Control"); len(retry) != 1 || retry[0] == "99" || !slices.Equal(cache, []string{"no-store"}) {
		t.Errorf("%d, Retry-After %q, Cache-Control %q", resp.StatusCode, retry, cache)
	}
}

// A response 304 is a success.
func TestNotModified(t *testing.T) {
	w := hooktest.Watch(t)
	url := urlOf(t, echo{handle: func(context.Context, string) error { return connect.NewNotModifiedError(nil) }}, connectlimit.Interceptor(w))
	client := textsconnect.NewTextsClient(http.DefaultClient, url, connect.WithHTTPGet())
	_, err := client.Once(context.Background(), connect.NewRequest(&texts.Text{}))
	if o := w.Next(t); !connect.IsNotModifiedError(err) || o.Status != 304 || connectlimit.Code(o) != 0 {
		t.Errorf("%v, %+v", err, o)
	}
}

// A key function of a client panics on a stream: the stream does not go on without a decision.
func TestAPanicOnAClientsStream(t *testing.T) {
	stream := clientOf(urlOf(t, echo{}), asking(func(core.Request) { panic("the key function's") })).Up(context.Background())
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

// kinds is a service whose responses have a header of their own.
type kinds struct {
	textsconnect.UnimplementedTextsHandler
}

func (kinds) Once(context.Context, *connect.Request[texts.Text]) (*connect.Response[texts.Text], error) {
	out := connect.NewResponse(&texts.Text{})
	out.Header().Set("X-Kind", "cached")
	return out, nil
}

func (kinds) Up(_ context.Context, stream *connect.ClientStream[texts.Text]) (*connect.Response[texts.Text], error) {
	stream.Conn().ResponseHeader().Set("X-Kind", "cached")
	for stream.Receive() {
	}
	return connect.NewResponse(&texts.Text{}), stream.Err()
}

func (kinds) Down(_ context.Context, _ *connect.Request[texts.Text], stream *connect.ServerStream[texts.Text]) error {
	stream.ResponseHeader().Set("X-Kind", "cached")
	stream.ResponseTrailer().Set("X-Kind", "to its end")
	return nil
}

// A rule sees the header that the handler has set in its response. So does a client with limiters
// of its own. Their decisions are not in the context, which may be that of a handler.
func TestAnOutcomeHasTheHeaderOfTheResponse(t *testing.T) {
	w := hooktest.Watch(t)
	url := urlOf(t, kinds{}, connectlimit.Interceptor(w))
	client := clientOf(url, perMinute(100), asking(func(r core.Request) {
		if d, found := connectlimit.DecisionFrom(r.Context()); found || "http://"+r.RemoteAddr() != url {
			t.Errorf("a client's call to %q has the decision %v in its context", r.RemoteAddr(), d)
		}
	}))
	_, once := client.Once(t.Context(), connect.NewRequest(&texts.Text{}))
	_, up := client.Up(t.Context()).CloseAndReceive()
	stream, down := client.Down(t.Context(), connect.NewRequest(&texts.Text{}))
	if err := errors.Join(once, up, down); err != nil || stream.Receive() {
		t.Fatal(err)
	}
	header, trailer := stream.ResponseHeader().Get("X-Kind"), stream.ResponseTrailer().Get("X-Kind")
	if header != "cached" || trailer != "to its end" {
		t.Errorf("the client sees the header %q and the trailer %q", header, trailer)
	}
	for range 3 {
		if got := w.Next(t).Header("X-Kind"); got != "cached" {
			t.Errorf("the rule sees %q", got)
		}
	}
}

// lasting is a context that never ends, and is none of package context.
type lasting struct{ context.Context }

func (lasting) Done() <-chan struct{} { return forever }

var forever = make(chan struct{})

// A client's stream that the program closes before its end was canceled. A stream that has ended
// leaves nothing behind on its context, which may last as long as the process: TestMain would
// find it.
func TestTheEndOfAClientsStream(t *testing.T) {
	w := hooktest.Watch(t)
	client := clientOf(urlOf(t, &service{handler: func(c rpctest.Call) error { return c.Send("one") }}), connectlimit.Interceptor(w))
	for toTheEnd, want := range map[bool]core.Outcome{true: {Status: 200}, false: {Status: core.StatusCanceled, Canceled: true}} {
		stream, err := client.Down(lasting{context.Background()}, connect.NewRequest(&texts.Text{}))
		if err != nil {
			t.Fatal(err)
		}
		for stream.Receive() && toTheEnd {
		}
		if err := errors.Join(stream.Err(), stream.Close()); err != nil {
			t.Error(err)
		}
		if o := w.Next(t); o.Status != want.Status || o.Canceled != want.Canceled {
			t.Errorf("read to the end: %t: the outcome is %+v, want %+v", toTheEnd, o, want)
		}
	}
	if len(w.Outcomes) != 0 {
		t.Errorf("a second outcome: %+v", w.Next(t))
	}
}

// broken is an interceptor behind a limiter. Its streams fail, and it counts what they are asked.
type broken struct {
	connect.Interceptor
	asked *int
}

type brokenConn struct {
	connect.StreamingClientConn
	broken
}

var errBroken = errors.New("broken")

func (b broken) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, s connect.Spec) connect.StreamingClientConn {
		return brokenConn{next(ctx, s), b}
	}
}

func (b broken) fail() error {
	*b.asked++
	return errBroken
}

func (c brokenConn) Send(any) error       { return c.fail() }
func (c brokenConn) Receive(any) error    { return c.fail() }
func (c brokenConn) CloseRequest() error  { return c.fail() }
func (c brokenConn) CloseResponse() error { return c.fail() }

// Receive tells why a client's stream was denied, and CloseRequest does not. So it is if the server
// denies a stream.
func TestCloseRequestOfADeniedStream(t *testing.T) {
	fault := errors.New("fault")
	l := connectlimit.Interceptor(oneBy(func(dst []byte, _ core.Request) ([]byte, error) { return dst, fault }))
	asked := 0
	client := clientOf("http://example.test", l, broken{perMinute(1), &asked})
	stream := client.Both(context.Background())
	if err := stream.CloseRequest(); err != nil {
		t.Errorf("CloseRequest: %v", err)
	}
	var denied *connectlimit.DeniedError
	if _, err := stream.Receive(); !errors.As(err, &denied) || !errors.Is(err, fault) || denied.Procedure != textsconnect.TextsBothProcedure || !strings.HasPrefix(denied.Error(), "unavailable: ") {
		t.Errorf("Receive: %v", err)
	}
	if _, err := client.Once(t.Context(), connect.NewRequest(&texts.Text{})); !errors.As(err, &denied) || !errors.Is(err, fault) || denied.Procedure != textsconnect.TextsOnceProcedure {
		t.Errorf("a call: %v", err)
	}
	if err := stream.CloseResponse(); err != nil || asked != 0 {
		t.Errorf("CloseResponse: %v; a denied stream has sent or closed something %d times", err, asked)
	}
	stream = clientOf("http://example.test", perMinute(1), broken{perMinute(1), &asked}).Both(t.Context())
	_, received := stream.Receive()
	for what, err := range map[string]error{
		"Send": stream.Send(&texts.Text{}), "Receive": received, "CloseRequest": stream.CloseRequest(), "CloseResponse": stream.CloseResponse(),
	} {
		if !errors.Is(err, errBroken) {
			t.Errorf("%s of an allowed stream that fails: %v", what, err)
		}
	}
}

// A call without an answer is Connect's to report: it is no panic of the limiter.
func TestACallWithoutAnAnswer(t *testing.T) {
	w := hooktest.Watch(t)
	answerless := around(func(context.Context, func(context.Context) error) error { return nil })
	client := clientOf("http://example.test", connectlimit.Interceptor(w), answerless)
	if _, err := client.Once(context.Background(), connect.NewRequest(&texts.Text{})); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("the error is %v", err)
	}
	if o := w.Next(t); o.Status != 200 {
		t.Errorf("the outcome is %+v", o)
	}
}

// A header is binary if its name ends in -bin, also if it has no other part. One that cannot be
// decoded is read as it is: a client cannot leave its key out that way.
func TestWhichHeadersAreDecoded(t *testing.T) {
	const raw, encoded = "\x00\xff", "AP8"
	headers := map[string][2]string{
		"-bin": {encoded, raw}, "-BIN": {encoded, raw}, "X-Token-Bin": {encoded, raw}, "bin": {encoded, encoded}, "X-Bin-X": {encoded, encoded}, "Xbin": {encoded, encoded},
		"X-Broken-Bin": {"%%%", "%%%"},
	}
	client := clientOf(urlOf(t, echo{}, asking(func(r core.Request) {
		for name, value := range headers {
			if got := r.HeaderValues(name); !slices.Equal(got, value[1:]) {
				t.Errorf("%s: %q, want %q", name, got, value[1:])
			}
		}
	})))
	r := connect.NewRequest(&texts.Text{})
	for name, value := range headers {
		r.Header().Set(name, value[0])
	}
	if _, err := client.Once(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// A GET has the message and its encoding in the query, in the order of their names. A POST has no query.
func TestTheQueryOfACall(t *testing.T) {
	var raw string
	var parameters []string
	url := urlOf(t, echo{}, asking(func(r core.Request) {
		message, found := r.Query("message")
		if raw, parameters = r.RawQuery(), []string{message}; !found {
			parameters = nil
		}
	}))
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

// A message that is denied has its fields in the trailer, where Cache-Control may not be.
func TestTheTrailerOfADeniedMessage(t *testing.T) {
	l := connectlimit.Interceptor(oneBy(keyfuncs.Static("")), connectlimit.PerMessage())
	stream := clientOf(urlOf(t, &service{handler: rpctest.OK}, l)).Up(t.Context())
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
