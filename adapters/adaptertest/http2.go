package adaptertest

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func http2(t *testing.T, a Adapter) {
	if a.ServeHTTP2 == nil {
		t.Skip("the framework has no HTTP/2")
	}
	t.Run("many streams of one connection", func(t *testing.T) {
		addr := a.ServeHTTP2(t, limited(hooktest.ByKey(t, keyfuncs.ClientIP(), 100)))
		client := newHTTP2Client(t)
		get := func() (status, major int, err error) {
			req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+addr+"/", nil)
			if err != nil {
				return 0, 0, err
			}
			resp, err := client.Do(req)
			if err != nil {
				return 0, 0, err
			}
			defer resp.Body.Close() //nolint:errcheck // only read from
			_, err = io.Copy(io.Discard, resp.Body)
			return resp.StatusCode, resp.ProtoMajor, err
		}
		var mu sync.Mutex
		statuses := map[int]int{}
		count := func() {
			status, major, err := get()
			if err != nil || major != 2 {
				t.Errorf("HTTP/%d, %v", major, err)
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		}
		count() // opens the connection that all others use
		var wg sync.WaitGroup
		for range 249 {
			wg.Go(count)
		}
		wg.Wait()
		want(t, statuses, 200, 100, 429, 150)
	})
	t.Run("streams that the client cancels at once count", func(t *testing.T) {
		var reached, left atomic.Uint64
		begun := make(chan struct{})
		first := sync.OnceFunc(func() { close(begun) })
		l := hooktest.ByKey(t, keyfuncs.ClientIP(), 100)
		addr := a.ServeHTTP2(t, App{Routes: []Route{{Method: http.MethodPost, Pattern: "/", Limits: []Limit{{Checker: l}}, Handler: func(c Context) error {
			reached.Add(1)
			first()
			<-c.Context().Done()
			left.Add(1)
			return nil
		}}}})
		client := newHTTP2Client(t)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				go func() { <-begun; cancel() }() // given up when some have been allowed, this one or others
				if req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+addr+"/", strings.NewReader("x")); err == nil {
					if resp, err := client.Do(req); err == nil {
						_ = resp.Body.Close()
					}
				}
				cancel()
			})
		}
		wg.Wait()
		waitFor(t, func() bool { return left.Load() == reached.Load() && hooktest.Count(l).Allowed == reached.Load() })
		if got := hooktest.Count(l).Allowed; got == 0 || got > 100 {
			t.Errorf("%d streams were allowed, want 1 to 100", got)
		}
	})
}

// newHTTP2Client returns a client that speaks HTTP/2 to servers whose
// certificates are made for the test.
func newHTTP2Client(t *testing.T) *http.Client {
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the server's certificate is made for the test
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: timeout}
}
