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
	"github.com/floodgate-go/floodgate/internal/httprequest"
)

// parse returns a pattern that has no problem.
func parse(t interface{ Fatalf(string, ...any) }, text string) Pattern {
	p, problem, _ := Parse(text)
	if problem != "" {
		t.Fatalf("%s: %s", text, problem)
	}
	return p
}

// routed is a request that a router has given to a route.
type routed struct {
	core.Request
	route string
}

func (r routed) Route() string { return r.route }

func TestReadingsOfAPath(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"/items/*", []string{"/items/7", "/items/7/", "/ITEMS/7", "/items//", "/items//7", "/items/.", "/items/./7", "/items/%2e", "/items/7%2f8", "/items/7%252f8", "/items%2f7", "/items%252f7", "/items.%252f7", "/items./7", "/items%2e/7", "/%69tems/7", "/%2569tems/7", "/x/../y", "/items/a+b", "/items/a\\b", "/ITEMS%2F7", "/Items%2f7", "/iTEMS%252F7", "/items/7%2F8", "/%49TEMS%2f7", "/items%2F.%2F7", "/items/%2E%2e%2F", "/x%2F..%2Fy", "/x%2f%2E%2E", "/x%5C..%5Cy", "/..%2Fx"},
			[]string{"/items", "/items/", "/item/7", "/items/7/8", "/items/7//8", "/itemz/7%2f8", "/items/7/8%20", "/other/a%2fb", "/ITEM%2F7", "/x%2f...%2f7", "/x%2F.%2Fy"}},
		{"/a/*/b", []string{"/a/1/b", "/a//b", "/a//1/b", "/a/./b", "/a/%2f/b", "/a/x%2fy/b", "/a/x/./b/", "/a%2fx%2fb", "/a%252fx%252fb"}, []string{"/a/b", "/a/1/2/b", "/a/1//c", "/a/1/b%2fc"}},
		{"/api/**", []string{"/api", "/api/", "/api//", "/api/x/y", "//api/x", "/api%2fx"}, []string{"/", "/apix", "/ap/i", "//ap"}},
		{"/", []string{"/", "//", "/.", "", "/%2e"}, []string{"/x", "*", "/%25"}},
		{"/**", []string{"/", "/x/y", "//", "*"}, nil},
		{"/my file", []string{"/my%20file", "/my+file", "/My%2520file"}, []string{"/myfile"}},
		{"/a%2fb", []string{"/a%2Fb", "/a%252fb", "/%61%2fb", "/A%2FB", "/A%2fb", "/a%252FB"}, []string{"/ab", "/a/b/c"}},
		{"/f/{rest...}", []string{"/f", "/f/", "/f/a", "/f/a/b"}, []string{"/g/a"}},
		{"/f/*rest", []string{"/f/a", "/f/a/b"}, []string{"/g/a"}},
		{"/v/a%3Ab%2B", []string{"/v/a:b+", "/v/a%3ab%2b"}, []string{"/v/ab"}},
		{"/x", []string{"/%25" + strings.Repeat("25", 20) + "41", "/" + strings.Repeat("./", 300) + "y", "/" + strings.Repeat("%2f", 20) + "y", "/y/%2e%2e%2fz", "/y/z%2f%2e.", "/y/z%2f..%2f"}, []string{"/" + strings.Repeat("y/", 300)}},
	} {
		p := parse(t, c.pattern)
		patterns := []Pattern{p}
		for want, targets := range map[bool][]string{true: c.yes, false: c.no} {
			for _, target := range targets {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				if target == "" { // of http://h, which is no request line
					r.URL.Path = ""
				} else if u, err := url.ParseRequestURI(target); err != nil {
					t.Fatal(err)
				} else {
					r.URL = u
				}
				if got := Of(httprequest.Request{HTTP: r}).Matches(patterns); got != want {
					t.Errorf("%s: %s matches: %t, want %t", c.pattern, target, got, want)
				}
			}
		}
	}
}

func TestARouteThatAPatternCovers(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"/items/*", []string{"/items/:id", "GET /items/{id}", "GET example.com/Items/{id}", "/items/{id:[0-9]*}", "/items/{x}/{$}", "/items/7"}, []string{"", "/", "/items/", "/items/*", "/items/{rest...}", "/items/:id/x", "/items/:id?", "/items/{id}/", "/:a", "/x/:id", "*"}},
		{"/items/**", []string{"/items/:id", "/items/*", "/items/*rest", "/items/{rest...}", "/items/{id}/", "/items/:id?", "/items/+", "/items/:id/x"}, []string{"/*", "/:any", "/{x...}"}},
		{"/items/7", []string{"/items/7", "GET /Items/7", "/items/7/{$}"}, []string{"/items/:id", "/items/7/", "/items", "/items/8"}},
		{"/items", []string{"/items", "/items/{$}"}, []string{"/items/:id?", "/items/", "/items/*"}},
		{"/items/x/**", []string{"/items/x", "/items/x/:id?", "/items/x/"}, []string{"/items/:id?", "/items/", "/items", "/items/{$}"}},
		{"/a/*/b", []string{"/a/:x/b", "/a//b"}, []string{"/a/:x", "/a/:x/c", "/a/:x/b/c", "/a/*/b"}},
	} {
		p := parse(t, c.pattern)
		for want, routes := range map[bool][]string{true: c.yes, false: c.no} {
			for _, route := range routes {
				if got := p.covers(route); got != want {
					t.Errorf("%s covers %s: %t, want %t", c.pattern, route, got, want)
				}
			}
		}
	}
	// The part of a route before a star in the same segment need not end at a slash of
	// the path.
	for _, c := range []struct {
		pattern, route, path string
		want                 bool
	}{
		{"/files/**", "/files*", "/filesbig.bin", true}, {"/files/big.bin", "/files*", "/filesbig.bin", true}, {"/files/*", "/files*", "/files", false},
		{"/files/**", "/files*", "/files", true}, {"/files/**", "/files*", "/files/a/b", true}, {"/files/big.bin", "GET /files*", "/files%62ig.bin", true},
		{"/files/small.bin", "/files*", "/filesbig.bin", false}, {"/a/files/**", "/a/files*", "/a/filesx/y", true}, {"/files/**", "/x/files*", "/x/filesx", false},
		{"/files/big.bin", "/files/*", "/filesbig.bin", false}, {"/files/**", "", "/filesbig.bin", false}, {"/files/big.bin", "/files", "/filesbig.bin", false},
		{"/files/**", "/:x/files*", "/filesbig.bin", false}, {"/", "/files*", "/other", false}, {"/x", "*", "/y", false},
		{"/files/*/*", "/files/*", "/files/x", false}, {"/%3Ax/files/1", "/:x/files*", "/:x/files1", false}, {"/files/..", "/files*", "/files..", true},
	} {
		p := parse(t, c.pattern)
		patterns := []Pattern{p}
		if got := Of(routed{httprequest.Request{HTTP: httptest.NewRequest(http.MethodGet, c.path, nil)}, c.route}).Matches(patterns); got != c.want {
			t.Errorf("%s by the route %s: %s matches: %t, want %t", c.path, c.route, c.pattern, got, c.want)
		}
	}
	// A request is for a policy by its route alone.
	p, _, _ := Parse("/items/*")
	patterns := []Pattern{p}
	r := httprequest.Request{HTTP: httptest.NewRequest(http.MethodGet, "/items/7/x", nil)}
	if Of(r).Matches(patterns) || !Of(routed{r, "/items/:id"}).Matches(patterns) {
		t.Error("the route is not compared")
	}
}

func TestAPatternIsReadOrRefused(t *testing.T) {
	for text, want := range map[string]string{ // what the problem says
		"/a": "", "/a/b": "", "/a/*": "", "/a/**": "", "/a/{id}": "", "/a/{rest...}": "", "/a/:id": "", "/a/*rest": "", "/a/:id?": "missing", "/:?": "? and #", "/a/{$}": "no part", "/{$}": "no part", "/{}": "", "/a.b": "",
		"": "does not begin", "a": "does not begin", "*": "does not begin",
		"/a/**/b": "at the end only", "/a/*rest/b": "at the end only", "/a/{rest...}/b": "at the end only",
		"/{id:[0-9]+}": "regular expression", "/{id:}": "regular expression",
		"/a+": "plus", "/+": "plus", "/:id+": "plus", "/*a+": "plus",
		"/a:b": "colon", "/a:": "colon", "/:a:b": "colon", "/:": "colon", "/*a:b": "colon",
		"/a?": "? and #", "/a#b": "? and #", "/?a": "? and #", "/:a?b": "? and #", "/:a#": "? and #", "/*a?": "? and #", "/*a#": "? and #",
		"/a*": "whole part", "/*a*": "whole part", "/**a": "whole part", "/***": "whole part", "/:a*": "whole part", "/{a}b": "whole part", "/a{b}": "whole part", "/{a}{b}": "whole part",
		"/{a{b}": "whole part", "/{a": "whole part", "/a}": "whole part", "/*{": "whole part", "/*a}": "whole part",
		"/%" + strings.Repeat("25", maxDecodings) + "41": "too often",
	} {
		p, problem, hint := Parse(text)
		if (problem == "") != (want == "") || !strings.Contains(problem, want) {
			t.Errorf("%s: problem %q, want %q", text, problem, want)
		}
		if problem != "" && hint == "" && want != "" {
			t.Errorf("%s: %q comes without a hint", text, problem)
		}
		if problem == "" && p.String() != text {
			t.Errorf("%s is shown as %s", text, p)
		}
	}
}

// spelled is a request of which a middleware has changed one spelling of the path.
type spelled struct {
	core.Request
	escaped, decoded, route string
}

func (r spelled) EscapedPath() string { return r.escaped }
func (r spelled) Path() string        { return r.decoded }
func (r spelled) Route() string       { return r.route }

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
		p := parse(t, c.pattern)
		path := Of(spelled{httprequest.Request{HTTP: httptest.NewRequest(http.MethodGet, "/", nil)}, c.escaped, c.decoded, c.route})
		if got := path.Matches([]Pattern{p}); got != c.want {
			t.Errorf("%s matches %q, decoded %q, by the route %q: %t, want %t", c.pattern, c.escaped, c.decoded, c.route, got, c.want)
		}
	}
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

// allReadings returns all ways in which routers may read an odd path: segments that are empty or a
// dot are kept or dropped, and each slash inside a segment separates two segments or does not.
func allReadings(segments []segment) [][]string {
	all := [][]string{nil}
	add := func(to [][]string, s segment) [][]string {
		var with [][]string
		for _, r := range to {
			with = append(with, append(slices.Clone(r), s.text))
			if s.optional() {
				with = append(with, r)
			}
		}
		return with
	}
	for _, s := range segments {
		if !s.inner {
			all = add(all, s)
			continue
		}
		var with [][]string
		for cuts := range 1 << strings.Count(s.text, "/") << strings.Count(s.text, `\`) {
			read, from, slashes := all, 0, 0
			for i, c := range s.text {
				if !isSlash(c) {
					continue
				}
				if cuts>>slashes&1 == 1 {
					read, from = add(read, segment{text: trimDots(s.text[from:i])}), i+1
				}
				slashes++
			}
			with = append(with, add(read, segment{text: trimDots(s.text[from:])})...)
		}
		all = with
	}
	return all
}

// A pattern matches an odd path if it matches one of its readings.
func TestAnOddPathMatchesIfAReadingDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "b", "*"})
		text := "/" + strings.Join(rapid.SliceOfN(part, 0, 4).Draw(t, "pattern"), "/")
		text = strings.TrimSuffix(text, "/") + rapid.SampledFrom([]string{"", "/**"}).Draw(t, "end")
		if text == "" {
			text = "/"
		}
		p := parse(t, text)
		segments := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) segment {
			s := segment{text: rapid.SampledFrom([]string{"a", "b", "", ".", "a/b", `b\a`, "/", "a/", "/b", "a//b", "a/./b", `a/b\a`}).Draw(t, "segment")}
			s.inner = strings.ContainsAny(s.text, `/\`)
			return s
		}), 0, 4).Draw(t, "path")
		want := slices.ContainsFunc(allReadings(segments), func(r []string) bool {
			plain := form{}
			for _, text := range r {
				plain.segments = append(plain.segments, segment{text: text})
			}
			return p.matchesForm(&plain)
		})
		if got := p.matchesOdd(segments); got != want {
			t.Errorf("%s and %+v: %v, want %v", text, segments, got, want)
		}
	})
}

// Patterns of any length are compared with odd paths.
func TestLongPatternsAndOddPaths(t *testing.T) {
	for n := 1; n <= 40; n++ {
		p := parse(t, strings.Repeat("/a", n))
		path := append(slices.Repeat([]segment{{text: "a"}}, n), segment{})
		if !p.matchesOdd(path) || p.matchesOdd(path[1:]) || p.matchesOdd(append(path, segment{text: "a"})) {
			t.Errorf("%d segments: want a match of the path of as many segments only", n)
		}
	}
}
