package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSite(t *testing.T) {
	s, err := newSite("")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.handler)
	defer server.Close()
	for range 60 {
		one(t.Context(), server.URL)
	}
	r, err := http.Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`floodgate_rate_limiting_requests_total{limit="client",limiter="api",result="allowed",rule="client"}`,
		`floodgate_rate_limiting_requests_total{limit="client",limiter="planned",result="allowed",rule="client"}`,
		`floodgate_rate_limiting_queued_requests{limiter="export",rule="export"} 0`,
		`floodgate_rate_limiting_degraded_total{limiter="login"} 0`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// The program ends when it is told to, and without Redis, which it does not need to start.
func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, redis := range []string{"", "127.0.0.1:1"} {
		if err := run(ctx, "127.0.0.1:0", redis, true); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("redis %q: %v", redis, err)
		}
	}
}
