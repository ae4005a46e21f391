package connectlimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts/textsconnect"
	"github.com/floodgate-go/floodgate/adapters/internal/rpctest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

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
	hooks := core.HookFuncs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial {
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
