package sitetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/examples/login/site"
)

// app is the example's server, and what it logs.
type app struct {
	url string
	log *bytes.Buffer
	mu  sync.Mutex
}

// Write makes app the log's writer.
func (a *app) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.Write(b)
}

func start(t *testing.T, serve func(*site.Site) site.Server, store string) *app {
	t.Helper()
	a := &app{log: &bytes.Buffer{}}
	o := site.Defaults()
	o.Store = store
	o.StoreTimeout = 20 * time.Second // busy machines: what is decided is tested, not how fast
	s, err := site.New(o, slog.New(slog.NewTextHandler(a, nil)), func() time.Time { return time.Unix(1_764_000_000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.url = "http://" + l.Addr().String()
	server, done := serve(s), make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// from is a client that connects from a local address. It does not ask the server
// to close the connection: net/http's server then closes it without reading the
// rest of a body that was denied, and the client may see a reset in place of the
// response.
func from(local string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
}

func (a *app) ask(t *testing.T, c *http.Client, forwardedFor, method, path, form string) (int, string) {
	t.Helper()
	status, _, body := a.send(t, c, forwardedFor, method, path, form, "")
	return status, body
}

func (a *app) send(t *testing.T, c *http.Client, forwardedFor, method, path, form, cookie string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, a.url+path, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("X-Forwarded-For", forwardedFor)
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	defer c.CloseIdleConnections()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(body)
}

func (a *app) login(t *testing.T, ip, user, password string) int {
	t.Helper()
	status, _ := a.ask(t, from("127.0.0.2"), ip, http.MethodPost, "/login", url.Values{"username": {user}, "password": {password}}.Encode())
	return status
}

// hits calls f n times and says how often each status came.
func hits(n int, f func(i int) int) string {
	counts := map[int]int{}
	for i := range n {
		counts[f(i)]++
	}
	return fmt.Sprint(counts)
}
