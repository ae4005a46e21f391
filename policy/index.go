package policy

import (
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// indexedPolicies is the number of policies above which an index is worth its
// cost.
const indexedPolicies = 8

// index finds the policies that may be for a request by what its path begins
// with, so that a request pays for those of its own part of the application.
type index struct {
	begin map[string][]int // by the first segment of a pattern, folded
	any   []int            // policies that may be for any path
}

// newIndex makes the index of a file's policies; nil if they are few.
func newIndex(policies []*policySpec) *index {
	if len(policies) <= indexedPolicies {
		return nil
	}
	x := &index{begin: map[string][]int{}}
	for i, p := range policies {
		names, all := p.match.begins()
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

// begins returns the first segments of all paths that the match is for; all is
// true if they can begin with any.
func (m *match) begins() (names []string, all bool) {
	if len(m.paths) == 0 {
		return nil, true
	}
	for _, p := range m.paths {
		if len(p.segments) == 0 || p.segments[0] == "" {
			return nil, true
		}
		if !slices.Contains(names, p.segments[0]) {
			names = append(names, p.segments[0])
		}
	}
	return names, false
}

// candidates appends the policies that may be for the request, in the order of
// the file. every is true if any may be, as the path has several readings.
func (x *index) candidates(dst []int, r core.Request) (found []int, every bool) {
	p, route := pathsOf(r), r.Route()
	open := openedBy(route, r)
	if p.odd() || open != nil && open.odd() {
		return dst, true
	}
	dst = append(dst, x.any...)
	dst = x.add(dst, p)
	if open != nil {
		dst = x.add(dst, open)
	}
	if _, route, found := strings.Cut(route, "/"); found {
		// A route that begins with a parameter is covered only by patterns that
		// are in any: see covers.
		first, _, _ := strings.Cut(route, "/")
		var folding paths
		dst = append(dst, x.begin[folding.fold(first)]...)
	}
	slices.Sort(dst)
	return slices.Compact(dst), false
}

// odd says that the path has several readings.
func (p *paths) odd() bool { return p.every || p.forms[0].odd || p.two && p.forms[1].odd }

// add appends the policies for what the path's forms begin with. Only patterns
// without segments match a path without any.
func (x *index) add(dst []int, p *paths) []int {
	for i, f := range p.forms {
		if len(f.segments) > 0 && (i == 0 || p.two) {
			dst = append(dst, x.begin[f.segments[0].text]...)
		}
	}
	return dst
}
