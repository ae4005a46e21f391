package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// traffic sends some 30 requests a second until ctx ends: some clients are over their
// limit, and now and then somebody guesses a password.
func traffic(ctx context.Context, site string) {
	ticker := time.NewTicker(33 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			go one(ctx, site)
		}
	}
}

// one sends a request of some kind.
func one(ctx context.Context, site string) {
	method, path, body := http.MethodGet, "/api", ""
	switch n := rand.IntN(20); { //nolint:gosec // it chooses what to show
	case n == 0:
		password := []string{"correct horse", "guess"}[rand.IntN(2)] //nolint:gosec // likewise
		method, path = http.MethodPost, "/login"
		body = url.Values{"username": {"ann"}, "password": {password}}.Encode()
	case n < 4:
		path = "/export?takes=300ms"
	}
	r, err := http.NewRequestWithContext(ctx, method, site+path, strings.NewReader(body))
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Forwarded-For", fmt.Sprint("203.0.113.", int(100*rand.Float64()*rand.Float64()))) //nolint:gosec // likewise
	if response, err := http.DefaultClient.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}
