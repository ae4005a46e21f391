package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
)

// at is a request for a path as a client wrote it, matched to a route.
type at struct {
	core.Request
	path, route string
}

func (r at) Method() string               { return "GET" }
func (r at) Path() string                 { return decode(r.path) }
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
		var file strings.Builder
		file.WriteString("policies:\n")
		for i := range 20 {
			chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(patterns), 0, 3, rapid.ID).Draw(t, "patterns")
			fmt.Fprintf(&file, "  - {name: p%d, limits: 5/m", i)
			if len(chosen) > 0 {
				fmt.Fprintf(&file, ", match: {paths: [\"%s\"]}", strings.Join(chosen, `", "`))
			}
			file.WriteString("}\n")
		}
		r := &reader{file: "f"}
		spec := r.read([]byte(file.String()), newOptions(nil))
		if len(r.errs) > 0 {
			t.Fatal(join(r.errs))
		}
		spec.config(nil, newOptions(nil))
		if spec.index == nil {
			t.Fatal("there is no index")
		}
		for range 20 {
			request := at{
				path:  "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(segments), 0, 4).Draw(t, "path"), "/"),
				route: rapid.SampledFrom(routes).Draw(t, "route"),
			}
			got, _ := spec.choose(nil, request)
			index := spec.index
			spec.index = nil
			want, _ := spec.choose(nil, request)
			spec.index = index
			if !slices.Equal(got, want) {
				t.Fatalf("%s, route %q: the index finds the rules %v, the whole file %v\n%s", request.path, request.route, got, want, &file)
			}
		}
	})
}
