package paths

import (
	"fmt"
	"path"
	"strings"
)

// Pattern is a pattern of paths, split at the slashes and folded as paths are.
type Pattern struct {
	text     string
	segments []string // "" matches any one segment
	rest     bool     // any number of segments may follow
}

const patternHint = "* stands for one part, ** at the end for any number"

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// Parse reads a pattern: /users/*, /users/{id}, /users/:id or /files/**. If text is no pattern,
// problem is the reason, and hint may be what to write instead.
//
// A router's own pattern either means here what it means in the router, or is an error: a wildcard
// that matches more in the router would leave paths without a limit.
func Parse(text string) (p Pattern, problem, hint string) {
	if !strings.HasPrefix(text, "/") {
		return p, "does not begin with a slash", patternHint
	}
	p.text = text
	clean := strings.Trim(path.Clean(text), "/")
	if clean == "" {
		return p, "", ""
	}
	var folding readings
	for clean != "" {
		name, rest, more := strings.Cut(clean, "/")
		clean = rest
		switch kind, wrong, hint := readPart(name); {
		case wrong != "":
			return p, fmt.Sprintf("%q: %s", name, wrong), hint
		case kind == manyParts && more:
			return p, fmt.Sprintf("%s stands at the end only", name), patternHint
		case kind == manyParts:
			p.rest = true
		case kind == onePart:
			p.segments = append(p.segments, "")
		default:
			p.segments = append(p.segments, folding.fold(name))
		}
	}
	if folding.every {
		return p, "is percent-encoded too often", patternHint
	}
	return p, "", ""
}

// partKind says what a part of a pattern matches.
type partKind uint8

const (
	plainPart partKind = iota
	onePart            // any one segment
	manyParts          // any number of segments, at the end of a pattern
)

// readPart returns what a part of a pattern between slashes matches, or what is wrong with it.
func readPart(name string) (kind partKind, problem, hint string) {
	inner := strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}")
	switch {
	case name == "**":
		return manyParts, "", ""
	case name == "*":
		return onePart, "", ""
	case name == "{$}":
		return 0, "is no part of a path", "write the path without it"
	case strings.HasPrefix(name, "{") && strings.ContainsAny(name, ":"):
		return 0, "a regular expression is not read here", "write * for one part, or ** at the end for any number"
	case len(inner) == len(name)-2 && !strings.ContainsAny(inner, "{}"):
		if strings.HasSuffix(inner, "...") {
			return manyParts, "", ""
		}
		return onePart, "", ""
	case strings.HasPrefix(name, "*") && !strings.ContainsAny(name[1:], "*{}?#:+"):
		return manyParts, "", "" // a router's name for what ** matches
	case strings.Contains(name, "+"):
		return 0, "a plus is a wildcard in some routers", "write ** at the end for any number of parts, or %2B for a plus in the path"
	case strings.LastIndexByte(name, ':') > 0 || name == ":":
		return 0, "a colon inside a part is a parameter in some routers", "write * for the whole part, or %3A for a colon in the path"
	case strings.HasPrefix(name, ":") && strings.HasSuffix(name, "?") && len(name) > 2:
		return 0, "a part that may be missing is not read here", "write two paths, with and without it"
	case strings.HasPrefix(name, ":") && !strings.ContainsAny(name, "*?#"):
		return onePart, "", ""
	case strings.ContainsAny(name, "?#"):
		return 0, "? and # do not belong to a path", "write the path alone; match.when can read the query"
	case strings.ContainsAny(name, "*{}"):
		return 0, "* stands for a whole part of the path", patternHint
	}
	return plainPart, "", ""
}

// matches reports whether the pattern matches any reading of the path.
func (p *Pattern) matches(all *readings) bool {
	return all.every || p.matchesForm(&all.forms[0]) || all.two && p.matchesForm(&all.forms[1])
}

func (p *Pattern) matchesForm(f *form) bool {
	if f.odd {
		return p.matchesOdd(f.segments)
	}
	if n := len(f.segments); n < len(p.segments) || n > len(p.segments) && !p.rest {
		return false
	}
	for i, name := range p.segments {
		if name != "" && name != f.segments[i].text {
			return false
		}
	}
	return true
}

// matchesOdd tries all readings at once. It walks the path's segments and keeps the set of
// positions in the pattern that some reading has reached.
func (p *Pattern) matchesOdd(segments []segment) bool {
	n := len(p.segments)
	var rooms [2][16]bool
	now, next := rooms[0][:], rooms[1][:]
	if n >= len(now) {
		now, next = make([]bool, n+1), make([]bool, n+1)
	}
	now[0] = true
	for _, s := range segments {
		if now[n] && p.rest {
			return true
		}
		clear(next)
		if s.inner {
			p.inner(now, next, s.text)
		} else {
			p.step(now, next, s.text, s.optional())
		}
		now, next = next, now
	}
	return now[n]
}

// step adds to next the positions that now reaches with one more segment.
func (p *Pattern) step(now, next []bool, text string, optional bool) {
	for used, possible := range now[:len(p.segments)+1] {
		if !possible {
			continue
		}
		if optional || used == len(p.segments) && p.rest {
			next[used] = true
		}
		if used < len(p.segments) && (p.segments[used] == "" || p.segments[used] == text) {
			next[used+1] = true
		}
	}
}

// inner adds to next the positions that now reaches with a segment that has slashes in it. Each
// slash may separate two segments, or not.
func (p *Pattern) inner(now, next []bool, text string) {
	bounds := []int{-1} // where the slashes are, and the ends
	for i := range len(text) {
		if isSlash(rune(text[i])) {
			bounds = append(bounds, i)
		}
	}
	bounds = append(bounds, len(text))
	sets := make([][]bool, len(bounds))
	for i := range sets {
		sets[i] = make([]bool, len(p.segments)+1)
	}
	copy(sets[0], now)
	for from := range len(bounds) - 1 {
		for to := from + 1; to < len(bounds); to++ {
			s := segment{text: trimDots(text[bounds[from]+1 : bounds[to]])}
			p.step(sets[from], sets[to], s.text, s.optional())
		}
	}
	copy(next, sets[len(sets)-1])
}

// covers reports whether the pattern matches every path that a router sends to a route. Some paths
// do not look like their route: a parameter at the end of an Echo route matches slashes, and a
// middleware may have routed the request by another path. A route that ends in a slash may match
// all paths below it.
func (p *Pattern) covers(route string) bool {
	begin := strings.IndexByte(route, '/') // http.ServeMux has a method and a host before it
	if begin < 0 {
		return false
	}
	var folding readings
	i := 0
	for text := route[begin+1:]; ; i++ {
		name, rest, more := strings.Cut(text, "/")
		switch {
		case name == "{$}" && !more:
			return i == len(p.segments)
		case name == "" && !more, strings.ContainsAny(name, "*+") && !strings.ContainsAny(name, ":{"), strings.HasSuffix(name, "...}"), strings.HasSuffix(name, "?"):
			return p.rest && i >= len(p.segments) // any number of segments, or none
		case i >= len(p.segments):
			return p.rest
		case p.segments[i] == "":
		case strings.ContainsAny(name, ":{"), folding.fold(name) != p.segments[i]:
			return false
		}
		if !more {
			return i+1 == len(p.segments)
		}
		text = rest
	}
}
