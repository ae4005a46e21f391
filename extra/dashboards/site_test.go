package dashboards

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// site is the program extra/examples/monitoring, which runs as its users run it, and its Redis.
type site struct {
	*testing.T
	*series

	url   string
	redis *redistest.Server
	proxy *faultproxy.Proxy
	now   time.Time // of the metrics: the program's time is another one
	next  int       // the last address that a client has come from
	hangs sync.WaitGroup
}

func startSite(t *testing.T) *site {
	t.Helper()
	program := filepath.Join(t.TempDir(), "monitoring")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "../examples/monitoring"
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	redis := redistest.Start(t)
	proxy := faultproxy.Start(t, redis.Addr)
	server := processtest.Serve(t, processtest.Program{
		Path: program,
		Dir:  t.TempDir(),
		Args: func(host, port string) []string {
			return []string{"-quiet", "-addr", net.JoinHostPort(host, port), "-redis", proxy.Addr}
		},
		Ready: func(s *processtest.Server) bool {
			r, err := http.Get("http://" + s.Addr + "/metrics")
			if err != nil {
				return false
			}
			defer func() { _ = r.Body.Close() }()
			text, _ := io.ReadAll(r.Body)
			return strings.Contains(string(text), "floodgate_rate_limiting_requests_total")
		},
	})
	return &site{T: t, series: newSeries(), url: "http://" + server.Addr, redis: redis, proxy: proxy, now: time.Date(2026, 1, 5, 3, 0, 0, 0, time.UTC)}
}

// stranger returns an address that no client has come from.
func (s *site) stranger() string {
	s.next++
	return fmt.Sprintf("10.%d.%d.%d", s.next>>16, s.next>>8&255, s.next&255)
}

// get sends a GET from an address and returns the status of the answer.
func (s *site) get(path, from string) int {
	return s.send(http.MethodGet, path, from, "")
}

func (s *site) send(method, path, from, body string) int {
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Error(err)
		return 0
	}
	r.Header.Set("X-Forwarded-For", from)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		if s.Context().Err() == nil {
			s.Errorf("%s: %v", path, err)
		}
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// logIn attempts to log in, and returns the status.
func (s *site) logIn(name, password, from string) int {
	return s.send(http.MethodPost, "/login", from, url.Values{"username": {name}, "password": {password}}.Encode())
}

// together does f n times at once.
func together(n int, f func()) {
	var all sync.WaitGroup
	for range n {
		all.Go(f)
	}
	all.Wait()
}

// look reads the metrics until one of the limiter export has a value above 0 and returns
// what it read then.
func (s *site) look(metric string) (text string) {
	s.Helper()
	processtest.WaitFor(s.T, metric, func() bool {
		r, err := http.Get(s.url + "/metrics")
		if err != nil {
			return false
		}
		all, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		text = string(all)
		_, after, found := strings.Cut(text, "\n"+metric+`{limiter="export",rule="export"} `)
		value, _, _ := strings.Cut(after, "\n")
		n, _ := strconv.Atoi(value)
		return err == nil && found && n > 0
	})
	return text
}
