package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"
)

// traffic lets some clients send requests until ctx ends: a few are polite, one searches
// too much, and one guesses passwords. The requests go to the handler directly.
func traffic(ctx context.Context, h http.Handler) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		send(ctx, h, http.MethodGet, "/items", "", fmt.Sprintf("198.51.100.%d", n%40))
		if n%5 == 0 {
			send(ctx, h, http.MethodGet, "/search/shoes", "", "203.0.113.7")
		}
		if n%3 == 0 {
			send(ctx, h, http.MethodGet, "/feed", "", "203.0.113.50")
		}
		if n%25 == 0 {
			send(ctx, h, http.MethodPost, "/login", url.Values{"username": {"alice"}, "password": {fmt.Sprint(n)}}.Encode(), "192.0.2.66")
		}
	}
}

func send(ctx context.Context, h http.Handler, method, path, body, from string) {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.RemoteAddr = from + ":1234"
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	h.ServeHTTP(httptest.NewRecorder(), r)
}
