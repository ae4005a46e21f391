package paths

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// allReadings returns all ways in which routers may read an odd path: segments that
// are empty or a dot are kept or dropped, and each slash inside a segment separates
// two segments or does not.
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
		text = strings.TrimSuffix(text, "/") + rapid.SampledFrom([]string{"", "/**", "/:x?"}).Draw(t, "end")
		if text == "" {
			text = "/"
		}
		p, problem, _ := Parse(text)
		if problem != "" {
			t.Fatalf("%s: %s", text, problem)
		}
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
		p, problem, _ := Parse(strings.Repeat("/a", n))
		if problem != "" {
			t.Fatal(problem)
		}
		path := append(slices.Repeat([]segment{{text: "a"}}, n), segment{})
		if !p.matchesOdd(path) || p.matchesOdd(path[1:]) || p.matchesOdd(append(path, segment{text: "a"})) {
			t.Errorf("%d segments: want a match of the path of as many segments only", n)
		}
	}
}

// A wildcard of a router without a name would match a segment that may be missing.
func TestAParameterWithoutAName(t *testing.T) {
	for text, want := range map[string]bool{"/:?": false, "/:": false, "/:a?": true, "/:a": true, "/a/:?": false, "/?": false} {
		if _, problem, _ := Parse(text); (problem == "") != want {
			t.Errorf("%s: %q", text, problem)
		}
	}
}
