package httpclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/httpclient"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// base is a RoundTripper.
type base func(*http.Request) (*http.Response, error)

func (f base) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// ok is a base that answers every request.
func ok(*http.Request) (*http.Response, error) { return answer(200), nil }

func answer(status int, header ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("hello"))}
	for i := 0; i+1 < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp
}

// closing is a body that counts how often it is closed.
type closing struct {
	io.Reader
	closed atomic.Int32
}

func (c *closing) Close() error { c.closed.Add(1); return nil }

func perHost(maxWait time.Duration, limits ...core.Limit) *core.Limiter {
	return core.Must(core.New(core.Config{
		Name: "out", MaxWait: maxWait,
		Rules: []core.Rule{{Name: "host", Key: httpclient.Host, Limits: limits}},
	}))
}

// recording returns a limiter that records the outcomes of its requests.
func recording() (*core.Limiter, func() []core.Outcome) {
	outcomes := make(chan core.Outcome, 100)
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "host", Key: httpclient.Host, Limits: []core.Limit{core.PerHour(100)},
		Counts: func(_ core.Request, o core.Outcome) bool { outcomes <- o; return true },
	}}}))
	return l, func() (got []core.Outcome) {
		for len(outcomes) > 0 {
			got = append(got, <-outcomes)
		}
		return got
	}
}

func transport(c core.Checker, b base) *httpclient.Transport {
	return core.Must(httpclient.New(httpclient.Config{Limiter: c, Base: b}))
}

func request(ctx context.Context, t *testing.T, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// send returns the status of a request, or 0 and its denial. Any other error fails.
func send(ctx context.Context, t *testing.T, rt http.RoundTripper, url string) (int, *httpclient.DeniedError) {
	t.Helper()
	body := &closing{Reader: strings.NewReader("x")}
	resp, err := rt.RoundTrip(request(ctx, t, url, body))
	if err == nil {
		_ = resp.Body.Close()
		return resp.StatusCode, nil
	}
	var denied *httpclient.DeniedError
	if !errors.As(err, &denied) {
		t.Fatal(err)
	}
	if body.closed.Load() == 0 {
		t.Error("the body of a denied request is not closed")
	}
	return 0, denied
}

func TestConfigsThatAreInvalid(t *testing.T) {
	limiter := perHost(0, core.PerHour(1))
	for want, c := range map[string]httpclient.Config{
		"Limiter: nil":             {},
		"Limiter: nil: pass":       {Limiter: (*core.Limiter)(nil)},
		"MaxHold needs a MaxPause": {Limiter: limiter, MaxHold: time.Second},
		"MaxPause: -1ns":           {Limiter: limiter, MaxPause: -1},
		"MaxPause: 8784h0m0.00":    {Limiter: limiter, MaxPause: core.MaxWindow + 1},
		"MaxHold: -1ns":            {Limiter: limiter, MaxPause: 1, MaxHold: -1},
		"MaxHold: 8784h0m0.00":     {Limiter: limiter, MaxPause: 1, MaxHold: core.MaxWindow + 1},
	} {
		if _, err := httpclient.New(c); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, d := range []time.Duration{0, 1, core.MaxWindow} {
		if _, err := httpclient.New(httpclient.Config{Limiter: limiter, MaxPause: d, MaxHold: d}); err != nil {
			t.Error(err)
		}
	}
}

// idle is a base that counts how often its idle connections are closed.
type idle struct {
	base
	closed int
}

func (i *idle) CloseIdleConnections() { i.closed++ }

func TestCloseIdleConnections(t *testing.T) {
	with := &idle{base: ok}
	for _, b := range []http.RoundTripper{with, base(ok)} {
		core.Must(httpclient.New(httpclient.Config{Limiter: perHost(0, core.PerHour(1)), Base: b})).CloseIdleConnections()
	}
	if with.closed != 1 {
		t.Errorf("the base is told %d times", with.closed)
	}
}

func TestRequestsOverTheLimitOfAHost(t *testing.T) {
	sent, disallowed := 0, 0
	limiter := core.Must(core.New(core.Config{
		Rules: []core.Rule{{Name: "host", Key: httpclient.Host, Limits: []core.Limit{core.PerHour(2)}}},
		Hooks: hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { disallowed++; return core.Denial{} }},
	}))
	rt := transport(limiter, func(*http.Request) (*http.Response, error) { sent++; return answer(200), nil })
	for i, url := range []string{"http://a/", "http://a/", "http://a/", "http://b/"} {
		status, denied := send(t.Context(), t, rt, url)
		if i != 2 && status != 200 || i == 2 && (denied == nil || denied.Held || denied.Host != "a" || denied.Decision.Rule() != "host" || denied.Decision.RetryAfter <= 0) {
			t.Errorf("request %d: %d, %v", i, status, denied)
		}
	}
	if sent != 3 || disallowed != 1 {
		t.Errorf("%d requests were sent, want 3; OnDisallowed was called %d times, want once", sent, disallowed)
	}
}

// A request ends once, with its response. A rule gets the header of the response as it came,
// whatever the caller does to it.
func TestTheEndOfARequest(t *testing.T) {
	broken := errors.New("broken")
	for name, row := range map[string]struct {
		body io.Reader
		end  func(cancel func(), body io.ReadCloser)
	}{
		"closed":       {strings.NewReader("hello"), func(_ func(), b io.ReadCloser) { _ = b.Close() }},
		"closed twice": {strings.NewReader("hello"), func(_ func(), b io.ReadCloser) { _ = b.Close(); _ = b.Close() }},
		"read":         {strings.NewReader("hello"), func(_ func(), b io.ReadCloser) { _, _ = io.ReadAll(b) }},
		"failed":       {io.MultiReader(strings.NewReader("hello"), failing{broken}), func(_ func(), b io.ReadCloser) { _, _ = io.ReadAll(b) }},
		"canceled":     {strings.NewReader("hello"), func(cancel func(), _ io.ReadCloser) { cancel() }},
	} {
		synctest.Test(t, func(t *testing.T) {
			limiter, outcomes := recording()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := transport(limiter, func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"X-Cost": {"1"}}, Body: struct {
					io.Reader
					io.Closer
				}{row.body, failing{broken}}}, nil
			}).RoundTrip(request(ctx, t, "http://a/", nil))
			if err != nil {
				t.Fatal(err)
			}
			resp.Header.Set("X-Cost", "2")
			if n, err := resp.Body.Read(make([]byte, 2)); n != 2 || err != nil {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
			if got := outcomes(); len(got) != 0 {
				t.Errorf("%s: the request has ended before: %v", name, got)
			}
			row.end(cancel, resp.Body)
			synctest.Wait()
			if got := outcomes(); len(got) != 1 || got[0].Status != 200 || got[0].Header("X-Cost") != "1" {
				t.Errorf("%s: the request has ended with %+v", name, got)
			}
			if err := resp.Body.Close(); !errors.Is(err, broken) || len(outcomes()) != 0 {
				t.Errorf("%s: the request ends twice, or Close returns %v", name, err)
			}
			if _, ok := resp.Body.(io.Writer); ok {
				t.Errorf("%s: the body can be written to", name)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
func (f failing) Close() error             { return f.err }

// If there is no body, a request ends before RoundTrip returns.
func TestTheOutcomeOfARequestWithoutABody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, row := range []struct {
		name string
		base base
		want core.Outcome
	}{
		{"empty", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
		}, core.Outcome{Status: 204}},
		{"no body", func(*http.Request) (*http.Response, error) { return new(http.Response), nil }, core.Outcome{}},
		{"no response", func(*http.Request) (*http.Response, error) { return nil, nil }, core.Outcome{Status: 502}}, //nolint:nilnil // a bad base
		{"failed", func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, core.Outcome{Status: 502}},
		{"failed, with a response", func(*http.Request) (*http.Response, error) { return answer(200), io.ErrUnexpectedEOF }, core.Outcome{Status: 502}},
		{"panicked", func(*http.Request) (*http.Response, error) { panic("base") }, core.Outcome{Status: 500, Panicked: true}},
		{"canceled", func(*http.Request) (*http.Response, error) { cancel(); return nil, io.ErrUnexpectedEOF }, core.Outcome{Status: core.StatusCanceled, Canceled: true}},
	} {
		limiter, outcomes := recording()
		body := &closing{Reader: strings.NewReader("x")}
		func() {
			defer func() {
				if got := recover(); (got == "base") != row.want.Panicked || got != nil && body.closed.Load() == 0 {
					t.Errorf("%s: recovered %v, the body is closed %d times", row.name, got, body.closed.Load())
				}
			}()
			var sent *http.Response
			var failed error
			resp, err := transport(limiter, func(r *http.Request) (*http.Response, error) {
				sent, failed = row.base(r)
				return sent, failed
			}).RoundTrip(request(ctx, t, "http://a/", body))
			if resp != sent || !errors.Is(err, failed) {
				t.Errorf("%s: %v, %v, want what the base returns: %v, %v", row.name, resp, err, sent, failed)
			}
		}()
		got := outcomes()
		if len(got) != 1 || got[0].Status != row.want.Status || got[0].Canceled != row.want.Canceled || got[0].Panicked != row.want.Panicked {
			t.Errorf("%s: the request has ended with %+v, want %+v", row.name, got, row.want)
		}
	}
}

// A body that a key function reads is sent whole, and the request stays as it is.
func TestARequestIsNotChanged(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer server.Close()
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "user", Limits: []core.Limit{core.PerHour(1)}, Key: func(dst []byte, r core.Request) ([]byte, error) {
			if head, err := r.Body(4); err == nil && len(head) > 0 && string(head) != "user" {
				t.Errorf("4 bytes of the body: %q", head)
			}
			return keyfuncs.PostField("username")(dst, r)
		},
	}}}))
	rt := core.Must(httpclient.New(httpclient.Config{Limiter: limiter, Base: server.Client().Transport}))
	defer rt.CloseIdleConnections()
	for i, text := range []string{"username=alice", "username=alice", "username=bob"} {
		r := request(t.Context(), t, server.URL, strings.NewReader(text))
		body, copied := r.Body, &closing{}
		r.GetBody = func() (io.ReadCloser, error) { copied.Reader = strings.NewReader(text); return copied, nil }
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := rt.RoundTrip(r)
		if r.Body != body || len(r.Header) != 1 || r.Host != strings.TrimPrefix(server.URL, "http://") {
			t.Error("the request was changed")
		}
		if copied.closed.Load() == 0 {
			t.Error("a copy of the body stays open")
		}
		if (i == 1) != (err != nil) {
			t.Fatalf("request %d: %v", i, err)
		}
		if err != nil {
			continue
		}
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != text || resp.Request != r {
			t.Errorf("the server got %q, %v", got, err)
		}
		_ = resp.Body.Close()
	}
}

// A body is read from a copy. If there is none, the key function gets an error and the request is denied.
func TestABodyWithoutACopy(t *testing.T) {
	broken := errors.New("broken")
	key := func(dst []byte, r core.Request) ([]byte, error) { _, err := r.Body(9); return dst, err }
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "body", Key: key, Limits: []core.Limit{core.PerHour(9)}}}}))
	for _, row := range []struct {
		body   io.ReadCloser
		copied func() (io.ReadCloser, error)
		want   error
	}{
		{nil, nil, nil}, {http.NoBody, nil, nil},
		{io.NopCloser(strings.NewReader("x")), nil, core.ErrBodyRead},
		{io.NopCloser(strings.NewReader("x")), func() (io.ReadCloser, error) { return nil, broken }, broken},
	} {
		r := request(t.Context(), t, "http://a/", row.body)
		r.Body, r.GetBody = row.body, row.copied
		if _, err := transport(limiter, ok).RoundTrip(r); !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
			t.Errorf("%v: %v, want %v", row.body, err, row.want)
		}
	}
}

func TestAConnectionThatSwitchesProtocolsCanBeWrittenTo(t *testing.T) {
	var under strings.Builder
	limiter, _ := recording()
	resp, err := transport(limiter, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: struct {
			io.ReadCloser
			io.Writer
		}{http.NoBody, &under}}, nil
	}).RoundTrip(request(t.Context(), t, "http://a/", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if w, ok := resp.Body.(io.Writer); !ok {
		t.Error("the body cannot be written to")
	} else if _, err := io.WriteString(w, "ping"); err != nil || under.String() != "ping" {
		t.Errorf("%q, %v", under.String(), err)
	}
}

func TestHost(t *testing.T) {
	type user struct{}
	for url, want := range map[string]string{
		"https://API.example/a":    "api.example",
		"https://api.example:443/": "api.example",
		"http://api.example:443/":  "api.example:443",
		"https://api.example:80/":  "api.example:80",
		"https://api.example:8443": "api.example:8443",
		"http://api.example.:81/":  "api.example:81",
		"http://api.example:081/":  "api.example:81",
		"http://API.example:0080/": "api.example",
		"http://[0:0::1]:80/":      "[::1]",
		"http://[::FFFF:7f00:1]/":  "127.0.0.1",
		"http://[fe80::1%25Eth0]/": "[fe80::1%Eth0]",
		"http://[::1]:81/":         "[::1]:81",
	} {
		var key string
		limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
			Name: "host", Limits: []core.Limit{core.PerHour(1)},
			Key: func(dst []byte, r core.Request) ([]byte, error) {
				dst, err := httpclient.Host(dst, r)
				key = string(dst)
				if r.RemoteAddr() != key || len(r.HeaderValues("host")) != 1 || r.Value(user{}) != "ann" {
					t.Errorf("RemoteAddr %q, Host %q, user %v", r.RemoteAddr(), r.HeaderValues("host"), r.Value(user{}))
				}
				return dst, err
			},
		}}}))
		if _, _ = send(context.WithValue(t.Context(), user{}, "ann"), t, transport(limiter, ok), url); key != want {
			t.Errorf("%s: %q, want %q", url, key, want)
		}
	}
	var denied *httpclient.DeniedError
	if _, err := transport(perHost(0, core.PerHour(0)), ok).RoundTrip(&http.Request{}); !errors.As(err, &denied) || denied.Host != "" {
		t.Errorf("a request without a URL: %v", err)
	}
	if key, err := httpclient.Host(nil, floodgatetest.NewRequest("GET", "/")); err == nil {
		t.Errorf("a request that no Transport sends: %q", key)
	}
}

// The text of a denial has the host, the limiter and the rule, and no key.
func TestTheTextOfADenial(t *testing.T) {
	e := httpclient.DeniedError{Host: "a.example"}
	e.Decision, _ = perHost(0, core.PerHour(0)).Take(t.Context(), 1, core.Hit{Rule: "host", Key: "secret"})
	for _, row := range []struct {
		held  bool
		after time.Duration
		err   error
		want  string
	}{
		{false, 3 * time.Second, errors.New("broken"), `limiter "out", rule "host": over limit, retry after 3s: broken`},
		{true, time.Second, nil, "the host has asked for a pause, retry after 1s"},
		{true, core.Never, nil, "the host has asked for a pause"},
		{true, 0, nil, "the host has asked for a pause"},
	} {
		e.Held, e.Decision.RetryAfter, e.Decision.Err = row.held, row.after, row.err
		if got, want := e.Error(), `httpclient: the request to "a.example" was not sent: `+row.want; got != want || e.Unwrap() != row.err { //nolint:errorlint // it is the same
			t.Errorf("%s, want %s", got, want)
		}
	}
}
