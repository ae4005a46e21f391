package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/exampletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gateway runs the program before a server.
func gateway(t *testing.T, policies, upstream string) (base string, log exampletest.Log) {
	t.Helper()
	return exampletest.Serve(t, func(ctx context.Context, log *slog.Logger, listening func(net.Addr)) error {
		return run(ctx, "127.0.0.1:0", policies, upstream, log, listening)
	})
}

func ask(t *testing.T, method, url string) (*http.Response, string) {
	t.Helper()
	r := core.Must(http.NewRequestWithContext(t.Context(), method, url, nil))
	resp := core.Must(http.DefaultClient.Do(r))
	defer resp.Body.Close() //nolint:errcheck // it was read
	return resp, string(core.Must(io.ReadAll(resp.Body)))
}

// Three in 6000 ms by method, as the file says; and as another file says while the gateway runs.
func TestTheGateway(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path+" for "+r.Header.Get("X-Forwarded-Host"))
	}))
	defer upstream.Close()
	text := core.Must(os.ReadFile("limits.yaml"))
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	own, _ := gateway(t, path, "")
	if _, body := ask(t, "PUT", own+"/a"); body != "upstream: PUT \"/a\"\n" {
		t.Errorf("the gateway's own server answers %q", body)
	}
	base, log := gateway(t, path, upstream.URL)
	for _, method := range []string{"GET", "POST"} {
		for i := range 5 {
			resp, body := ask(t, method, base+"/a")
			want := 200
			if i >= 3 {
				want = 429
			}
			if resp.StatusCode != want || resp.Header.Get("X-RateLimit-Limit") != "3" || len(resp.Header.Get("X-RateLimit-Reset")) > len("6000") ||
				want == 200 && !strings.HasPrefix(body, method+" /a for 127.0.0.1:") {
				t.Errorf("%s %d: %d %q %v", method, i, resp.StatusCode, body, resp.Header)
			}
		}
	}
	log.Wait(t, `rule=by-address method=GET path=/a dry_run=true`)
	log.Wait(t, `rule=by-method method=GET path=/a dry_run=false`)
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "maximumRequests: 3", "maximumRequests: 1000", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	log.Wait(t, "policy file in force")
	if resp, _ := ask(t, "GET", base+"/a"); resp.StatusCode != http.StatusOK {
		t.Errorf("after the change: %d", resp.StatusCode)
	}
	if _, err := behind("localhost:3000"); err == nil || !strings.HasPrefix(err.Error(), `-upstream: "localhost:3000": want a URL such as http://`) {
		t.Errorf("a server without a scheme: %v", err)
	}
}
