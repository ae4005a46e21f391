package connectlimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts/textsconnect"
	"github.com/floodgate-go/floodgate/core"
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
