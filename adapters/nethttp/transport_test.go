package httplimit_test

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

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
)

// trips is a RoundTripper.
type trips func(*http.Request) (*http.Response, error)

func (f trips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// closing is a body that counts how often it is closed.
type closing struct {
	io.Reader
	closed atomic.Int32
}

func (c *closing) Close() error { c.closed.Add(1); return nil }

func perTarget(maxWait time.Duration, limits ...core.Limit) *core.Limiter {
	return core.Must(core.New(core.Config{
		Name: "out", MaxWait: maxWait,
		Rules: []core.Rule{{Name: "host", Key: httplimit.TargetHost, Limits: limits}},
	}))
}

func request(ctx context.Context, t *testing.T, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func answer(status int, header ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("hello"))}
	for i := 0; i+1 < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp
}

// send returns the status of a request, or 0 and its denial. Any other error fails.
func send(ctx context.Context, t *testing.T, rt http.RoundTripper, url string) (int, *httplimit.DeniedError) {
	t.Helper()
	body := &closing{Reader: strings.NewReader("x")}
	resp, err := rt.RoundTrip(request(ctx, t, url, body))
	if err == nil {
		_ = resp.Body.Close()
		return resp.StatusCode, nil
	}
	var denied *httplimit.DeniedError
	if !errors.As(err, &denied) {
		t.Fatal(err)
	}
	if body.closed.Load() == 0 {
		t.Error("the body of a denied request is not closed")
	}
	return 0, denied
}

func TestATransportDeniesWhatIsOverTheLimitOfAHost(t *testing.T) {
	var met atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		met.Add(1)
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	other := httptest.NewServer(server.Config.Handler)
	defer other.Close()
	client := &http.Client{Transport: httplimit.Transport(perTarget(0, core.PerHour(2)), server.Client().Transport)}
	defer client.CloseIdleConnections()
	for i, url := range []string{server.URL, server.URL, server.URL, other.URL} {
		body := &closing{Reader: strings.NewReader("hello")}
		resp, err := client.Do(request(t.Context(), t, url, body))
		if i == 2 {
			var denied *httplimit.DeniedError
			if !errors.As(err, &denied) || denied.Held || denied.Decision.Rule() != "host" || denied.Decision.RetryAfter <= 0 {
				t.Fatalf("the third request: %v", err)
			}
			if body.closed.Load() == 0 {
				t.Error("the body of the denied request is not closed")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "hello" {
			t.Errorf("request %d: %q, %v", i, got, err)
		}
		_ = resp.Body.Close()
	}
	if met.Load() != 3 {
		t.Errorf("%d requests were sent, want 3", met.Load())
	}
}

func TestASlotIsHeldUntilTheEndOfTheResponse(t *testing.T) {
	broken := errors.New("broken")
	for name, end := range map[string]func(cancel func(), resp *http.Response){
		"closed":       func(_ func(), resp *http.Response) { _ = resp.Body.Close() },
		"closed twice": func(_ func(), resp *http.Response) { _ = resp.Body.Close(); _ = resp.Body.Close() },
		"read":         func(_ func(), resp *http.Response) { _, _ = io.ReadAll(resp.Body) },
		"canceled":     func(cancel func(), _ *http.Response) { cancel() },
	} {
		synctest.Test(t, func(t *testing.T) {
			limiter := perTarget(0, core.InFlight(1))
			rt := httplimit.Transport(limiter, trips(func(*http.Request) (*http.Response, error) { return answer(200), nil }))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := rt.RoundTrip(request(ctx, t, "http://a/", nil))
			if err != nil {
				t.Fatal(err)
			}
			if status, _ := send(t.Context(), t, rt, "http://a/"); status != 0 {
				t.Errorf("%s: the slot is free before", name)
			}
			end(cancel, resp)
			synctest.Wait()
			for range 2 {
				if status, _ := send(t.Context(), t, rt, "http://a/"); status != 200 {
					t.Errorf("%s: the slot is not free", name)
				}
			}
		})
	}
	for name, base := range map[string]trips{
		"an error": func(*http.Request) (*http.Response, error) { return nil, broken },
		"no body": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNoContent}, nil
		},
		"empty body": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
		},
	} {
		rt := httplimit.Transport(perTarget(0, core.InFlight(1)), base)
		for range 3 {
			resp, err := rt.RoundTrip(request(t.Context(), t, "http://a/", nil))
			if err != nil && !errors.Is(err, broken) {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil && resp.Body != nil {
				_ = resp.Body.Close()
			}
		}
	}
}

func TestABaseThatPanicsHoldsNoSlot(t *testing.T) {
	panics := true
	rt := httplimit.Transport(perTarget(0, core.InFlight(1)), trips(func(*http.Request) (*http.Response, error) {
		if panics {
			panic("base")
		}
		return answer(200), nil
	}))
	body := &closing{Reader: strings.NewReader("x")}
	func() {
		defer func() {
			if got := recover(); got != "base" {
				t.Errorf("recovered %v", got)
			}
		}()
		_, _ = rt.RoundTrip(request(t.Context(), t, "http://a/", body))
	}()
	if body.closed.Load() == 0 {
		t.Error("the body is not closed")
	}
	panics = false
	if status, denied := send(t.Context(), t, rt, "http://a/"); status != 200 {
		t.Error(denied)
	}
}

func TestARequestWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := perTarget(time.Second, core.Limit{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow})
		sent := 0
		rt := httplimit.Transport(limiter, trips(func(*http.Request) (*http.Response, error) { sent++; return answer(200), nil }))
		start := time.Now()
		_, _ = send(t.Context(), t, rt, "http://a/")
		if status, _ := send(t.Context(), t, rt, "http://a/"); status != 200 || time.Since(start) != time.Second {
			t.Errorf("the second: %d after %v", status, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		status, denied := send(ctx, t, rt, "http://a/")
		if status != 0 || !errors.Is(denied, context.Canceled) || time.Since(start) != 1300*time.Millisecond {
			t.Errorf("the canceled: %d, %v after %v", status, denied, time.Since(start))
		}
		time.Sleep(700 * time.Millisecond)
		if status, denied := send(t.Context(), t, rt, "http://a/"); status != 200 || time.Since(start) != 2*time.Second || sent != 3 {
			t.Errorf("after the canceled: %d, %v after %v, %d sent", status, denied, time.Since(start), sent)
		}
	})
}
