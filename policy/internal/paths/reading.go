// Package paths compares the paths of requests with patterns such as /users/*, so that no spelling
// of a path gets around a pattern.
package paths

import (
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/escapes"
)

// Routers disagree about odd spellings of a path. Some decode the path before they split it at the
// slashes, some after that, some not at all. Some take an empty segment for a parameter, others
// drop it. An odd path therefore has several readings, and a pattern matches the path if it matches
// any of them.
//
// The target of a ".." depends on more than the path: a file server behind http.StripPrefix
// resolves dots after the prefix is removed, and Fiber's Static removes the prefix after they are
// resolved. A path with such a segment therefore matches every pattern. Clients resolve dots before
// they send a path.

// Bounds of the comparison. A path beyond them matches every pattern.
const (
	maxDecodings   = 8   // rounds of percent-decoding until nothing changes
	maxOddSegments = 256 // segments of a path that has several readings
	maxInner       = 16  // segments that decoding makes of one
)

// Path is what patterns are compared with: a request's path as routers may read it, and the route
// that a router has matched.
type Path struct {
	readings readings
	route    string    // "" if no router has matched one
	open     *readings // what openedBy makes of the route; nil for nearly all routes
}

// Of returns the path of a request.
func Of(r core.Request) *Path {
	p := &Path{route: r.Route()}
	p.open = openedBy(p.route, r)
	all := &p.readings
	escaped, decoded := r.EscapedPath(), r.Path()
	if escaped == "" {
		escaped = decoded
	}
	all.forms[0] = all.read(escaped, all.room[:0])
	// If nothing is escaped, both are the same unless a middleware has changed one.
	if all.two = decoded != escaped; all.two {
		all.forms[1] = all.read(decoded, nil)
	}
	return p
}

// Matches reports whether one of the patterns matches the path or the route.
func (p *Path) Matches(patterns []Pattern) bool {
	for i := range patterns {
		q := &patterns[i]
		if q.matches(&p.readings) || p.route != "" && q.covers(p.route) || p.open != nil && q.matches(p.open) {
			return true
		}
	}
	return false
}

// readings are a path as routers may read it.
type readings struct {
	every bool // it matches every pattern
	two   bool // there are two forms
	forms [2]form
	room  [8]segment // for the segments of usual paths
}

// form is one of two spellings of the path: the client's, or the one that the server has decoded.
type form struct {
	segments []segment
	odd      bool // it has several readings
}

// segment is a part of a path between slashes, in lower case and decoded until nothing changes.
type segment struct {
	text  string
	inner bool // text has slashes, which separate segments in some routers
}

// optional reports whether some routers drop the segment.
func (s segment) optional() bool { return s.text == "" || s.text == "." }

// openedBy returns the path as a route such as /files* reads it: the text before the star and the
// text after it are segments, although no slash separates them. Echo's Static registers such a
// route, which serves the file x for /filesx. It returns nil for other routes.
func openedBy(route string, r core.Request) *readings {
	before, found := strings.CutSuffix(route, "*")
	begin := strings.IndexByte(before, '/')
	if !found || begin < 0 || strings.HasSuffix(before, "/") || strings.ContainsAny(before, ":*{") {
		return nil
	}
	p, n, before := new(readings), 0, before[begin:]
	for _, text := range []string{r.EscapedPath(), r.Path()} {
		if rest, is := strings.CutPrefix(text, before); is {
			p.forms[n] = p.read(before+"/"+rest, nil)
			n++
		}
	}
	if n == 0 {
		return nil // a middleware has changed the path since it was routed
	}
	p.two = n == len(p.forms)
	return p
}

// read splits a path at its slashes.
func (p *readings) read(text string, room []segment) form {
	f := form{segments: room}
	text = strings.TrimPrefix(text, "/")
	for text != "" && !p.every { // nothing that is empty behind the last slash is a segment
		part, rest, _ := strings.Cut(text, "/")
		text = rest
		s := segment{text: p.fold(part)}
		s.inner = strings.ContainsAny(s.text, `/\`)
		switch {
		case s.text == "..":
			p.every = true
		case s.inner:
			inner := strings.FieldsFunc(s.text, isSlash)
			for _, name := range inner {
				p.every = p.every || name == ".."
			}
			p.every = p.every || strings.Count(s.text, "/")+strings.Count(s.text, `\`) >= maxInner
			f.odd = true
		case s.optional():
			f.odd = true
		}
		f.segments = append(f.segments, s)
	}
	p.every = p.every || f.odd && len(f.segments) > maxOddSegments
	return f
}

func isSlash(c rune) bool { return c == '/' || c == '\\' }

// fold maps all spellings of a segment to one, however often a router decodes it, and whether it
// takes a plus for a space or not.
func (p *readings) fold(s string) string {
	for range maxDecodings {
		if !strings.ContainsAny(s, "%+") {
			return trimDots(strings.ToLower(s))
		}
		decoded, _ := escapes.Decode(s) // not every server refuses a malformed one
		if decoded == s {
			return trimDots(strings.ToLower(s))
		}
		s = decoded
	}
	p.every = true
	return s
}

// trimDots removes the dots at the end of a segment that has other characters: Fiber's Static for
// /files takes /files./x for the file ./x.
func trimDots(s string) string {
	if trimmed := strings.TrimRight(s, "."); trimmed != "" && !strings.ContainsFunc(s, isSlash) {
		return trimmed
	}
	return s
}
