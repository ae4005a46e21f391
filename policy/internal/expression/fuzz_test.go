package expression

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/requesttest"
)

// No expression panics, whatever a client sends, and a key is not much longer than
// what it was made from. How long the worst expressions take is measured by
// BenchmarkWorstExpression.
func FuzzExpression(f *testing.F) {
	for _, text := range []string{
		"method", `header["x"] + query["y"]`, `cidr(ip, "10.0.0.0/8")`, "#[attributes.queryParams['identifier']]", `path matches "^/a+$"`, `len(form["a"]) > 3 ? "x" : json["a.b"]`,
		`path[1:2] in ["a"]`, `int(query["y"]) % 0`, `-9223372036854775808 / -1`, `1.0 / 0`, `lower(upper(trim(path)))`, `nil ?? user`, `path?.x`, `not ("a" < path)`, `max(1, 2.5)`,
	} {
		f.Add(text, "value", "/path")
	}
	f.Fuzz(func(t *testing.T, text, value, path string) {
		e, bad := Compile(text, testSources())
		if bad != nil {
			if bad.Problem == "" {
				t.Error("an error without words")
			}
			return
		}
		r := &http.Request{Method: http.MethodPost, Header: http.Header{"X": {value}, "Content-Type": {"application/x-www-form-urlencoded"}}, Body: io.NopCloser(strings.NewReader("a=" + value)), RemoteAddr: value}
		r.URL = httptest.NewRequest(http.MethodGet, "/", nil).URL
		r.URL.Path, r.URL.RawQuery = path, "y="+value
		requesttest.See(t, r.WithContext(t.Context()), func(r core.Request) {
			key, err := e.Key(nil, r)
			if most := maxNodesOf*(len(value)+len(path)+100) + len(text); err == nil && len(key) > most {
				t.Errorf("a key of %d bytes", len(key))
			}
			_, _ = e.Holds(r)
			if n, err := e.Hits(r); err == nil && (n < 0 || n > core.MaxQuota+1) {
				t.Errorf("%d hits", n)
			}
		})
	})
}
