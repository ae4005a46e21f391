package policy

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// No text makes the parser panic, or refuse a file without saying where. How long
// the worst files take is measured by BenchmarkWorstFiles.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/broken_files.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "\n=== ") {
		_, file, _ := strings.Cut(block, "\n")
		file, _, _ = strings.Cut(file, ">>>\n")
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		store := core.Must(core.NewMemory(core.MemoryConfig{}))
		defer store.Close() //nolint:errcheck // it is not used
		s, err := Parse("f", text, WithStore(store), Log(slog.New(slog.NewTextHandler(io.Discard, nil))))
		if err != nil {
			if len(Errors(err)) == 0 {
				t.Errorf("an error without a place: %v", err)
			}
		} else {
			r := httptest.NewRequest(http.MethodPost, "/a/b?x=1", strings.NewReader("a=b"))
			asRequest(t, r, func(r core.Request) {
				s.Check(r)
				s.Explain(r)
			})
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

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
		e, bad := compile(text, testSources())
		if bad != nil {
			if bad.problem == "" {
				t.Error("an error without words")
			}
			return
		}
		r := &http.Request{Method: http.MethodPost, Header: http.Header{"X": {value}, "Content-Type": {"application/x-www-form-urlencoded"}}, Body: io.NopCloser(strings.NewReader("a=" + value)), RemoteAddr: value}
		r.URL = httptest.NewRequest(http.MethodGet, "/", nil).URL
		r.URL.Path, r.URL.RawQuery = path, "y="+value
		asRequest(t, r.WithContext(t.Context()), func(r core.Request) {
			key, err := e.key(nil, r)
			if most := maxNodesOf*(len(value)+len(path)+100) + len(text); err == nil && len(key) > most {
				t.Errorf("a key of %d bytes", len(key))
			}
			_, _ = e.holds(r)
			if n, err := e.hits(r); err == nil && (n < 0 || n > core.MaxQuota+1) {
				t.Errorf("%d hits", n)
			}
		})
	})
}
