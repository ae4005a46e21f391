package paths

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/requesttest"
)

// spelled is a request of which a middleware has changed one spelling of the path.
type spelled struct {
	core.Request
	escaped, decoded, route string
}

func (r spelled) EscapedPath() string { return r.escaped }
func (r spelled) Path() string        { return r.decoded }
func (r spelled) Route() string       { return r.route }

// seeSpelled calls see with the path of such a request.
func seeSpelled(t *testing.T, escaped, decoded, route string, see func(p *Path)) {
	t.Helper()
	requesttest.See(t, httptest.NewRequest(http.MethodGet, "/", nil), func(r core.Request) {
		see(Of(spelled{r, escaped, decoded, route}))
	})
}

// A router may go by either spelling of the path, so a pattern is compared with both.
func TestAPatternMatchesEitherSpelling(t *testing.T) {
	for _, c := range []struct {
		pattern, escaped, decoded, route string
		want                             bool
	}{
		{"/items/*", "/items/7", "/x", "", true},
		{"/items/*", "/x", "/items/7", "", true},
		{"/items/*", "/x", "/y", "", false},
		{"/items/*", "/x", "/items//7", "", true},
		{"/items/*", "/x", "/y/..", "", true},
		{"/items/*", "", "/items/7", "", true},
		{"/", "", "/items/7", "", false}, // there is no second spelling
		{"/", "/x", "", "", true},
		{"/", "/x", "/x", "", false},

		{"/files/big", "/filesbig", "/other", "/files*", true},
		{"/files/big", "/other", "/filesbig", "/files*", true},
		{"/files/big", "/filesx", "/filesbig", "/files*", true},
		{"/files/big", "/filesx", "/filesy", "/files*", false},
		{"/", "/filesx", "/other", "/files*", false}, // one spelling is of this route
	} {
		p, problem, _ := Parse(c.pattern)
		if problem != "" {
			t.Fatal(problem)
		}
		seeSpelled(t, c.escaped, c.decoded, c.route, func(path *Path) {
			if got := path.Matches([]Pattern{p}); got != c.want {
				t.Errorf("%s matches %q, decoded %q, by the route %q: %t, want %t", c.pattern, c.escaped, c.decoded, c.route, got, c.want)
			}
		})
	}
}

// The index finds the sets for both spellings, and every set if one of them has
// several readings.
func TestTheIndexLooksAtBothSpellings(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	var sets [][]Pattern
	for _, name := range names {
		p, _, _ := Parse("/" + name)
		sets = append(sets, []Pattern{p})
	}
	sets = append(sets, nil) // for all paths
	all := len(names)
	x := NewIndex(sets)
	for _, c := range []struct {
		escaped, decoded, route string
		want                    []int
		every                   bool
	}{
		{"/a", "/a", "", []int{0, all}, false},
		{"/a", "/c", "", []int{0, 2, all}, false},
		{"/x", "/c", "", []int{2, all}, false},
		{"", "/c", "", []int{2, all}, false},
		{"/", "/", "", []int{all}, false},
		{"/a", "/c//d", "", nil, true},
		{"/a//d", "/c", "", nil, true},
		{"/a", "/c/..", "", nil, true},
		{"/..", "/..", "", nil, true},
		{"/bx", "/bx", "/b*", []int{1, all}, false},
		{"/b..", "/b..", "/b*", nil, true},
		{"/bx", "/c", "/b*", []int{1, 2, all}, false},
		{"/x", "/x", "GET /D/{y}", []int{3, all}, false},
	} {
		seeSpelled(t, c.escaped, c.decoded, c.route, func(path *Path) {
			if got, every := x.Candidates(nil, path); every != c.every || !every && !slices.Equal(got, c.want) {
				t.Errorf("%q, decoded %q, by the route %q: the sets %v, every set: %t, want %v, %t", c.escaped, c.decoded, c.route, got, every, c.want, c.every)
			}
		})
	}
	if NewIndex(sets[:indexed]) != nil || NewIndex(sets[:indexed+1]) == nil {
		t.Errorf("want an index of more than %d sets", indexed)
	}
}
