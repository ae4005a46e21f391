package policy

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/file"
)

// at is a request for a path as a client wrote it, matched to a route.
type at struct {
	core.Request
	path, route string
}

func (r at) Method() string               { return "GET" }
func (r at) Path() string                 { path, _ := url.QueryUnescape(r.path); return path }
func (r at) EscapedPath() string          { return r.path }
func (r at) Route() string                { return r.route }
func (r at) Value(any) any                { return nil }
func (r at) HeaderValues(string) []string { return nil }
func (r at) Cookie(string) (string, bool) { return "", false }
func (r at) Body(int) ([]byte, error)     { return nil, nil }
func (r at) RemoteAddr() string           { return "192.0.2.1:5" }

// The index never leaves out a policy that is for a request.
func TestTheIndexFindsWhatTheWholeFileFinds(t *testing.T) {
	patterns := []string{"/", "/a", "/A/*", "/a/**", "/b/:id?", "/b/c/{x}", "/**", "/*", "/*/c", "/:x?", "/%61b", "/c/{rest...}", "/{$}", "/a%2fb/c"}
	segments := []string{"a", "A", "b", "c", "ab", "%61", "%2561", "a%2fb", "", ".", "..", "%2e", "a.", "a+b", "*", "é", "a%5cb", "ax", "c"}
	routes := []string{"", "/", "/a", "GET /a/{id}", "/:x/c", "/b/:id?", "/*", "example.org/A/{rest...}", "/{$}", "/%61/b", "POST example.org/", "/a*", "/b/c*"}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		text.WriteString("policies:\n")
		for i := range 20 {
			chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(patterns), 0, 3, rapid.ID).Draw(t, "patterns")
			fmt.Fprintf(&text, "  - {name: p%d, limits: 5/m", i)
			if len(chosen) > 0 {
				fmt.Fprintf(&text, ", match: {paths: [\"%s\"]}", strings.Join(chosen, `", "`))
			}
			text.WriteString("}\n")
		}
		read, problems := file.Read([]byte(text.String()), file.Options{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		spec := enforce(read, core.Must(newOptions(nil)), nil)
		spec.configs(nil)
		if spec.index == nil {
			t.Fatal("there is no index")
		}
		for range 20 {
			request := at{
				path:  "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(segments), 0, 4).Draw(t, "path"), "/"),
				route: rapid.SampledFrom(routes).Draw(t, "route"),
			}
			got, _ := spec.choose(nil, request, false)
			index := spec.index
			spec.index = nil
			want, _ := spec.choose(nil, request, false)
			spec.index = index
			if !slices.Equal(got, want) {
				t.Fatalf("%s, route %q: the index finds the rules %v, the whole file %v\n%s", request.path, request.route, got, want, &text)
			}
		}
	})
}
