package main

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The program serves the page, and its crowd over connections.
func TestTheProgram(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	addr, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", func(a net.Addr) { addr <- a }) }()
	var base string
	select {
	case a := <-addr:
		base = "http://" + a.String()
	case err := <-ended:
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for path, kind := range map[string]string{"/": "text/html", "/page.css": "text/css", "/page.js": "text/javascript"} {
		resp, err := client.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(got, kind) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, got)
		}
		if got := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'") || strings.Contains(got, "unsafe") {
			t.Errorf("%s: %q", path, got)
		}
		_ = resp.Body.Close()
	}
	resp, err := client.PostForm(base+"/crowd", url.Values{"user": {"ann"}})
	if err != nil {
		t.Fatal(err)
	}
	answers := map[bool]int{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		answers[strings.Contains(lines.Text(), `"status":200`) || strings.Contains(lines.Text(), `"status":429`)]++
	}
	_ = resp.Body.Close()
	if answers[true] != 30 || answers[false] != 0 {
		t.Errorf("answers: %v", answers)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
