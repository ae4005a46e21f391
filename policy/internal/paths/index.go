package paths

import (
	"slices"
	"strings"
)

// indexed is the number of sets above which an index is faster than comparing all.
const indexed = 8

// Index finds the sets of patterns that may match a path by the path's first
// segment, so that a request is compared only with patterns of its own part of an
// application.
type Index struct {
	begin map[string][]int // by the first segment of a pattern, folded
	any   []int            // sets that may match any path
}

// NewIndex returns an index of sets of patterns; nil if there are few. An empty set
// matches all paths.
func NewIndex(sets [][]Pattern) *Index {
	if len(sets) <= indexed {
		return nil
	}
	x := &Index{begin: map[string][]int{}}
	for i, patterns := range sets {
		names, all := begins(patterns)
		if all {
			x.any = append(x.any, i)
			continue
		}
		for _, name := range names {
			x.begin[name] = append(x.begin[name], i)
		}
	}
	return x
}

// begins returns the first segments of all paths that the patterns match; all is
// true if they can begin with any.
func begins(patterns []Pattern) (names []string, all bool) {
	if len(patterns) == 0 {
		return nil, true
	}
	for _, p := range patterns {
		if len(p.segments) == 0 || p.segments[0] == "" {
			return nil, true
		}
		if !slices.Contains(names, p.segments[0]) {
			names = append(names, p.segments[0])
		}
	}
	return names, false
}

// Candidates appends the sets that may match the path, in order. every is true if
// any set may, because the path has several readings.
func (x *Index) Candidates(dst []int, p *Path) (found []int, every bool) {
	if p.readings.odd() || p.open != nil && p.open.odd() {
		return dst, true
	}
	dst = append(dst, x.any...)
	dst = x.add(dst, &p.readings)
	if p.open != nil {
		dst = x.add(dst, p.open)
	}
	if _, route, found := strings.Cut(p.route, "/"); found {
		// Only patterns in any cover a route that begins with a parameter: see covers.
		first, _, _ := strings.Cut(route, "/")
		var folding readings
		dst = append(dst, x.begin[folding.fold(first)]...)
	}
	slices.Sort(dst)
	return slices.Compact(dst), false
}

// add appends the sets for the first segments of a path's forms. Only patterns
// without segments match a path without any.
func (x *Index) add(dst []int, p *readings) []int {
	for i, f := range p.forms {
		if len(f.segments) > 0 && (i == 0 || p.two) {
			dst = append(dst, x.begin[f.segments[0].text]...)
		}
	}
	return dst
}
