package site

import (
	_ "embed"
	"net/http"
)

//go:embed page.html
var pageHTML []byte

//go:embed page.css
var pageCSS []byte

//go:embed page.js
var pageJS []byte

// contentSecurity lets the page have its own style and script, and talk to its own server.
const contentSecurity = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// servePage serves the page and what it consists of.
func servePage(mux *http.ServeMux) {
	for path, part := range map[string]struct {
		kind string
		text []byte
	}{
		"GET /{$}":      {"text/html; charset=utf-8", pageHTML},
		"GET /page.css": {"text/css; charset=utf-8", pageCSS},
		"GET /page.js":  {"text/javascript; charset=utf-8", pageJS},
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Content-Type", part.kind)
			h.Set("Content-Security-Policy", contentSecurity)
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Cache-Control", "no-store")
			_, _ = w.Write(part.text)
		})
	}
}
