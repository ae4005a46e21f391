package paths

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/requesttest"
)

// The index finds every set of patterns that matches a path, whether the path is
// odd or not and whatever route a router has matched. Of a path that is not odd it
// finds no set whose patterns all begin with another segment.
func TestTheIndexFindsEverySetThatMatches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "b", "c", "*", "A", "%61"})
		pattern := rapid.Custom(func(t *rapid.T) Pattern {
			p, problem, _ := Parse("/" + strings.Join(rapid.SliceOfN(part, 0, 3).Draw(t, "parts"), "/") + rapid.SampledFrom([]string{"", "/**"}).Draw(t, "end"))
			if problem != "" {
				t.Fatal(problem)
			}
			return p
		})
		sets := rapid.SliceOfN(rapid.SliceOfN(pattern, 0, 2), indexed-1, 2*indexed).Draw(rt, "sets")
		x := NewIndex(sets)
		if (x == nil) != (len(sets) <= indexed) {
			rt.Fatalf("an index of %d sets: %v", len(sets), x)
		}
		if x == nil {
			return
		}
		segment := rapid.SampledFrom([]string{"a", "b", "c", "d", "A", "%61", "", ".", "..", "a%2fb"})
		path := "/" + strings.Join(rapid.SliceOfN(segment, 0, 3).Draw(rt, "path"), "/")
		route := rapid.SampledFrom([]string{"", "GET /a/{x}", "/b/:x", "/:x/b", "/A", "/", "/a*", "/c*"}).Draw(rt, "route")
		u, err := url.Parse(path)
		if err != nil || u.Host != "" {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = u
		requesttest.See(t, r, func(r core.Request) {
			p := Of(routed{r, route})
			found, every := x.Candidates(nil, p)
			if !slices.IsSorted(found) || len(slices.Compact(slices.Clone(found))) != len(found) {
				rt.Errorf("%v: not in order", found)
			}
			if odd := p.readings.odd() || p.open != nil && p.open.odd(); every != odd {
				rt.Errorf("%s: every set: %v, odd: %v", path, every, odd)
			}
			for i, set := range sets {
				candidate := every || slices.Contains(found, i)
				if p.Matches(set) && !candidate {
					rt.Errorf("%s, route %q: the set %v matches and is not found", path, route, set)
				}
				if every || !candidate || route != "" || len(p.readings.forms[0].segments) == 0 {
					continue
				}
				first := p.readings.forms[0].segments[0].text
				if len(set) > 0 && !slices.ContainsFunc(set, func(p Pattern) bool {
					return len(p.segments) == 0 || p.segments[0] == "" || p.segments[0] == first
				}) {
					rt.Errorf("%s: the set %v is found, and begins with another segment", path, set)
				}
			}
		})
	})
}

// readAll returns the readings of an escaped path.
func readAll(path string) *readings {
	r := new(readings)
	r.forms[0] = r.read(path, nil)
	return r
}

// A path beyond the bounds of the comparison matches every pattern, and one that
// just keeps to them does not.
func TestTheBoundsOfAPath(t *testing.T) {
	for name, c := range map[string]struct {
		path  string
		every bool
	}{
		"encoded eight times":         {"/%" + strings.Repeat("25", maxDecodings-2) + "41", false},
		"encoded nine times":          {"/%" + strings.Repeat("25", maxDecodings-1) + "41", true},
		"slashes in a segment":        {"/" + strings.Repeat("a%2f", maxInner-1), false},
		"too many slashes":            {"/" + strings.Repeat("a%2f", maxInner), true},
		"slashes of both kinds":       {"/" + strings.Repeat("a%2f", maxInner/2) + strings.Repeat("a%5c", maxInner/2), true},
		"fewer slashes of both kinds": {"/" + strings.Repeat("a%2f", maxInner/2) + strings.Repeat("a%5c", maxInner/2-1), false},
		"odd segments":                {strings.Repeat("/.", maxOddSegments), false},
		"too many odd segments":       {strings.Repeat("/.", maxOddSegments+1), true},
		"many segments":               {strings.Repeat("/a", maxOddSegments+1), false},
		"dots":                        {"/a/..", true},
		"dots in a segment":           {"/a%2f..%2fb", true},
	} {
		if got := readAll(c.path).every; got != c.every {
			t.Errorf("%s: matches every pattern: %v", name, got)
		}
	}
}

// decode undoes one round of what url.PathEscape does, and keeps what is no escape.
func TestDecode(t *testing.T) {
	const digits, capitals = "0123456789abcdef", "0123456789ABCDEF"
	for c := range 256 {
		for _, set := range []string{digits, capitals} {
			for _, text := range []string{"%s", "x%s", "%sx"} {
				escaped := strings.Replace(text, "%s", "%"+string(set[c>>4])+string(set[c&15]), 1)
				if got, want := decode(escaped), strings.Replace(text, "%s", string([]byte{byte(c)}), 1); got != want {
					t.Errorf("%s becomes %q, want %q", escaped, got, want)
				}
			}
		}
		if escape := "%" + string([]byte{byte(c), '0'}); !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) && c != '%' && c != '+' && decode(escape) != escape {
			t.Errorf("%q becomes %q", escape, decode(escape))
		}
	}
	for _, text := range []string{"%", "%4", "x%", "x%4", "%g0", "%0g", "%%"} {
		if got := decode(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := decode("a+b%2B"); got != "a b+" {
		t.Errorf("%q", got)
	}
}
