package httpresponse_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/adapters/internal/httpresponse"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/httprequest"
)

// A denial of a request whose body was not read ends a connection of HTTP/1. A
// connection of HTTP/2 has other requests.
func TestADenialEndsAConnectionOfHTTP1Only(t *testing.T) {
	for _, row := range []struct {
		major, read int
		want        string
	}{{1, 0, "close"}, {1, 3, "close"}, {1, 100, ""}, {2, 0, ""}} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a body"))
		r.ProtoMajor = row.major
		_, _ = httprequest.Request{HTTP: r}.Body(row.read)
		w := httptest.NewRecorder()
		httpresponse.Deny(w, r, &core.Decision{}, core.Denial{Status: 429})
		if got := w.Header().Get("Connection"); got != row.want {
			t.Errorf("HTTP/%d, %d bytes were read: Connection: %q, want %q", row.major, row.read, got, row.want)
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
