package peers

import (
	"net/http"
	"net/http/httptest"

	"github.com/go-chi/httprate"
)

var httprated = Peer{
	Name: "httprate", Module: "github.com/go-chi/httprate",
	// The library decides for a response only: it is given one that keeps
	// nothing, and its headers are part of what is measured.
	Local: func(l Limit) (Allow, func()) {
		limiter := httprate.NewRateLimiter(l.Quota, l.Window)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		return func(key string) bool { return !limiter.OnLimit(Discard{http.Header{}}, r, key) }, nothing
	},
	HTTP: func(l Limit) func(http.Handler) http.Handler {
		return httprate.LimitBy(l.Quota, l.Window, httprate.KeyByIP) //nolint:staticcheck // its README's own way where there is no proxy
	},
}

// Discard is a response that goes nowhere.
type Discard struct{ H http.Header }

// Header implements [http.ResponseWriter].
func (d Discard) Header() http.Header { return d.H }

// Write implements [http.ResponseWriter].
func (d Discard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements [http.ResponseWriter].
func (d Discard) WriteHeader(int) {}
