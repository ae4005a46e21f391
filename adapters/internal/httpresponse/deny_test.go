package httpresponse_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/adapters/internal/httpresponse"
	"github.com/floodgate-go/floodgate/core"
)

// A denial of a request whose body was not read ends a connection of HTTP/1. A
// connection of HTTP/2 has other requests.
func TestADenialEndsAConnectionOfHTTP1Only(t *testing.T) {
	for major, want := range map[int]string{1: "close", 2: ""} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a body"))
		r.ProtoMajor = major
		w := httptest.NewRecorder()
		httpresponse.Deny(w, r, &core.Decision{}, core.Denial{Status: 429})
		if got := w.Header().Get("Connection"); got != want {
			t.Errorf("HTTP/%d: Connection: %q, want %q", major, got, want)
		}
	}
}

// The headers of a limit are added to those of another limiter. Cache-Control and
// Retry-After have one line only: that of the last decision.
func TestTheHeadersOfTwoLimiters(t *testing.T) {
	l := core.Must(core.New(core.Config{
		Headers: core.HeadersXSeconds | core.HeadersDraft10,
		Rules:   []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}},
	}))
	for _, allowed := range []bool{true, false} {
		d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
		lines := d.AppendHeaders(nil)
		if err != nil || d.Allowed != allowed || len(lines) < 4 {
			t.Fatalf("%v, %v, %v", d, err, lines)
		}
		for _, before := range []string{"", "old"} {
			set, denied := http.Header{}, httptest.NewRecorder()
			if before != "" {
				for _, line := range lines {
					set[line.Name], denied.Header()[line.Name] = []string{before}, []string{before}
				}
			}
			httpresponse.SetHeaders(set, &d)
			httpresponse.Deny(denied, httptest.NewRequest(http.MethodGet, "/", nil), &d, core.Denial{Status: 429})
			for _, line := range lines {
				want := []string{line.Value}
				if before != "" && line.Name != "Cache-Control" && line.Name != "Retry-After" {
					want = []string{before, line.Value}
				}
				if !slices.Equal(set[line.Name], want) || !slices.Equal(denied.Header()[line.Name], want) {
					t.Errorf("%s beside %q: %q and %q, want %q", line.Name, before, set[line.Name], denied.Header()[line.Name], want)
				}
			}
		}
	}
}

// Deny removes what describes the body of another response, and sends no body with HEAD.
func TestWhatADenialSends(t *testing.T) {
	for method, want := range map[string]string{"GET": "no", "HEAD": ""} {
		w := httptest.NewRecorder()
		for _, name := range []string{"Content-Length", "Etag", "Last-Modified", "X-Other"} {
			w.Header().Set(name, "1")
		}
		denial := core.Denial{Status: 429, Header: []core.Header{{Name: "content-type", Value: "text/plain"}, {Name: "X-Mine", Value: "2"}}, Body: []byte("no")}
		httpresponse.Deny(w, httptest.NewRequest(method, "/", nil), &core.Decision{}, denial)
		if h := w.Header(); w.Code != 429 || w.Body.String() != want || h.Get("Content-Type") != "text/plain" || h.Get("X-Mine") != "2" || h.Get("X-Other") != "1" || h.Get("Content-Length")+h.Get("Etag")+h.Get("Last-Modified") != "" {
			t.Errorf("%s: %d, %q, %v", method, w.Code, w.Body, h)
		}
		w = httptest.NewRecorder()
		httpresponse.SetDenialHeader(w.Header(), httptest.NewRequest(method, "/", nil), &core.Decision{}, denial, true)
		w.WriteHeader(http.StatusTeapot)
		if h := w.Header(); w.Code != http.StatusTeapot || w.Body.Len() != 0 || h.Get("Content-Type") != "" || h.Get("X-Mine") != "2" {
			t.Errorf("%s, the handler's: %d, %q, %v", method, w.Code, w.Body, h)
		}
	}
}
