package policy

import (
	"fmt"
	"path"
	"strings"
)

// pattern is a pattern of paths, cut at the slashes and folded as paths are. A
// segment "" matches any one segment; rest says that any number may follow.
type pattern struct {
	text     string
	segments []string
	rest     bool
}

const maxPatterns = 1000

// parsePattern reads a pattern: /users/*, /users/{id}, /users/:id and /files/**.
func parsePattern(text string) (p pattern, problem string) {
	if !strings.HasPrefix(text, "/") {
		return p, "does not begin with a slash"
	}
	p.text = text
	clean := strings.Trim(path.Clean(text), "/")
	if clean == "" {
		return p, ""
	}
	var folding paths
	for name := range strings.SplitSeq(clean, "/") {
		switch {
		case p.rest:
			return p, "** stands at the end only"
		case name == "**":
			p.rest = true
		case name == "*", strings.HasPrefix(name, ":") && len(name) > 1, strings.HasPrefix(name, "{") && strings.HasSuffix(name, "}"):
			p.segments = append(p.segments, "")
		case strings.ContainsAny(name, "*{}?#"):
			return p, fmt.Sprintf("%q: * stands for a whole part of the path", name)
		default:
			p.segments = append(p.segments, folding.fold(name))
		}
	}
	if folding.every {
		return p, "is percent-encoded too often"
	}
	return p, ""
}

// matches says whether any reading of the path is one that the pattern is for.
func (p *pattern) matches(all *paths) bool {
	return all.every || p.matchesForm(&all.forms[0]) || all.two && p.matchesForm(&all.forms[1])
}

func (p *pattern) matchesForm(f *form) bool {
	if f.odd {
		return p.matchesOdd(f.segments)
	}
	if len(f.segments) < len(p.segments) || len(f.segments) > len(p.segments) && !p.rest {
		return false
	}
	for i, name := range p.segments {
		if name != "" && name != f.segments[i].text {
			return false
		}
	}
	return true
}

// matchesOdd tries all readings at once: it goes through the path with the set
// of how many of the pattern's segments may have been used up so far.
func (p *pattern) matchesOdd(segments []segment) bool {
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

// step adds to next where now leads with one more segment of the path.
func (p *pattern) step(now, next []bool, text string, optional bool) {
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

// inner adds to next where now leads with a segment that has slashes in it, each
// of which either separates two segments or does not.
func (p *pattern) inner(now, next []bool, text string) {
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

// covers says whether the pattern matches every path that a router gives to a
// route. Some routers give a route paths that do not look like it: a parameter
// at the end of an Echo route matches slashes. A route without a parameter tells
// nothing that the path does not.
func (p *pattern) covers(route string) bool {
	begin := strings.IndexByte(route, '/') // http.ServeMux has a method and a host before it
	if begin < 0 || !strings.ContainsAny(route, ":{*+") {
		return false
	}
	var folding paths
	i := 0
	for text := route[begin+1:]; ; i++ {
		name, rest, more := strings.Cut(text, "/")
		switch {
		case name == "{$}" && !more:
			return i == len(p.segments)
		case name == "" && !more, strings.ContainsAny(name, "*+") && !strings.ContainsAny(name, ":{"), strings.HasSuffix(name, "?"), strings.HasSuffix(name, "...}"):
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
