package httprequest

import (
	"net/http"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
)

// Target returns the Target of a request's method and path.
func Target(r *http.Request) mounting.Target {
	if r.URL == nil {
		return mounting.TargetOf(r.Method, "", "")
	}
	return mounting.TargetOf(r.Method, r.URL.Path, r.URL.RawPath)
}
