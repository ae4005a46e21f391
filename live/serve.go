package live

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
)

//go:embed page.html
var page string

// policy is the page's Content-Security-Policy: its own style and script, by their hash,
// and requests to where it came from.
var policy = "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src '" +
	hashOf("<style>", "</style>") + "'; script-src '" + hashOf("<script>", "</script>") + "'"

// hashOf returns the hash of an element of the page, as Content-Security-Policy Level 3
// (section 2.3.1) writes it.
func hashOf(begin, end string) string {
	_, text, _ := strings.Cut(page, begin)
	text, _, _ = strings.Cut(text, end)
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// ServeHTTP implements [http.Handler]. The page can be mounted under any path.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	switch r.Method {
	case http.MethodPost:
		p.act(w, r)
	case http.MethodGet, http.MethodHead:
		if r.URL.RawQuery == "events" && r.Method == http.MethodGet {
			p.events(w, r)
			return
		}
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(page))
		}
	default:
		h.Set("Allow", "GET, HEAD, POST")
		answer(w, http.StatusMethodNotAllowed, result{Error: "use GET or POST"})
	}
}

// answer writes the result of an action.
func answer(w http.ResponseWriter, status int, r result) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(r)
}
