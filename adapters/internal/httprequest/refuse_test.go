package httprequest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// A denial of a request whose body was not read ends a connection of HTTP/1. A
// connection of HTTP/2 has other requests.
func TestADenialEndsAConnectionOfHTTP1Only(t *testing.T) {
	for major, want := range map[int]string{1: "close", 2: ""} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a body"))
		r.ProtoMajor = major
		w := httptest.NewRecorder()
		httprequest.Refuse(w, r, &core.Decision{}, core.Denial{Status: 429}, nil)
		if got := w.Header().Get("Connection"); got != want {
			t.Errorf("HTTP/%d: Connection: %q, want %q", major, got, want)
		}
	}
}
