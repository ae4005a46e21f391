package httprequest_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/floodgate-go/floodgate/internal/httprequest"
)

// If a middleware has changed the path alone, routers still go by the escaped path.
func TestTheEscapedPathIsTheOneThatRoutersRead(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/a%2Fb", nil)
	r.URL.Path = "/other"
	if got := (httprequest.Request{HTTP: r}).EscapedPath(); got != "/a%2Fb" {
		t.Errorf("%q, want /a%%2Fb", got)
	}
}

// A client's request may have no method and no URL.
func TestARequestWithoutAnything(t *testing.T) {
	r := httprequest.Request{HTTP: &http.Request{}}
	_, cookie := r.Cookie("a")
	_, query := r.Query("a")
	body, err := r.Body(9)
	if len(body) > 0 || err != nil || r.Method() != "GET" || r.Path()+r.EscapedPath()+r.RawQuery() != "" || cookie || query {
		t.Errorf("%q %q %q, a cookie: %v, a parameter: %v", r.Method(), r.EscapedPath(), r.RawQuery(), cookie, query)
	}
	other := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/p", RawQuery: "a=1&a=2&b"}, Header: http.Header{"Cookie": {"a=c"}}}
	r = httprequest.Request{HTTP: other}
	value, cookie := r.Cookie("a")
	first, query := r.Query("a")
	empty, has := r.Query("b")
	_, none := r.Query("c")
	if r.Method() != "POST" || r.Path() != "/p" || r.RawQuery() != "a=1&a=2&b" || value != "c" || !cookie || first != "1" || !query || empty != "" || !has || none {
		t.Errorf("%q %q %q, cookie %q, parameters %q and %q", r.Method(), r.Path(), r.RawQuery(), value, first, empty)
	}
}
