package httprequest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
)

// If a middleware has changed the path alone, routers still go by the escaped path.
func TestTheEscapedPathIsTheOneThatRoutersRead(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/a%2Fb", nil)
	r.URL.Path = "/other"
	if got := (httprequest.Request{HTTP: r}).EscapedPath(); got != "/a%2Fb" {
		t.Errorf("%q, want /a%%2Fb", got)
	}
}
