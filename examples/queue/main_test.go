package main

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/exampletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The program serves the page, and its crowd over connections.
func TestTheProgram(t *testing.T) {
	base, _ := exampletest.Serve(t, func(ctx context.Context, _ *slog.Logger, listening func(net.Addr)) error {
		return run(ctx, "127.0.0.1:0", listening)
	})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for path, kind := range map[string]string{"/": "text/html", "/page.css": "text/css", "/page.js": "text/javascript"} {
		resp := core.Must(client.Get(base + path))
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(got, kind) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, got)
		}
		if got := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'") || strings.Contains(got, "unsafe") {
			t.Errorf("%s: %q", path, got)
		}
		_ = resp.Body.Close()
	}
	resp := core.Must(client.PostForm(base+"/crowd", url.Values{"user": {"ann"}}))
	answers := map[bool]int{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		answers[strings.Contains(lines.Text(), `"status":200`) || strings.Contains(lines.Text(), `"status":429`)]++
	}
	_ = resp.Body.Close()
	if answers[true] != 30 || answers[false] != 0 {
		t.Errorf("answers: %v", answers)
	}
}
