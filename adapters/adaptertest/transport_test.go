package adaptertest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/httpclient"
	"github.com/floodgate-go/floodgate/inflight"
)

// The test is here because goleak would be a requirement of every program that imports
// httpclient if a test of that package used it.
func TestATransportLeavesNoGoroutine(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	limiter := core.Must(inflight.New(inflight.Config{MaxWait: time.Minute, Max: 2, Key: httpclient.Host}))
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	rt := core.Must(httpclient.New(httpclient.Config{Limiter: limiter, Base: base, MaxPause: time.Hour, MaxHold: time.Hour}))
	send := func(ctx context.Context, path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		return rt.RoundTrip(r)
	}
	canceled := func(path string) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				resp, err := send(ctx, path)
				var denied *httpclient.DeniedError
				if err == nil {
					_ = resp.Body.Close()
				} else if !errors.As(err, &denied) || !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", path, err)
				}
			})
		}
		cancel()
		all.Wait()
	}

	var open []*http.Response
	for range 2 {
		resp, err := send(t.Context(), "/")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, resp)
	}
	canceled("/") // in line for a slot
	for _, resp := range open {
		_ = resp.Body.Close()
	}
	resp, err := send(t.Context(), "/busy")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	canceled("/") // held back
}
