package policy

import (
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// Routers disagree about odd spellings of a path. One decodes before it cuts the
// path at the slashes, another after that, or not at all; one takes an empty
// segment for a parameter, another drops it. So an odd path has several
// readings, and a policy is for a request if its pattern matches any of them.
//
// Where a ".." leads depends on more than the path: a file server behind
// http.StripPrefix removes dots after its prefix is gone, and Fiber's Static cuts
// the prefix off after they are gone. A path with such a segment therefore
// matches every pattern. Clients resolve dots before they send a path.

// Bounds of what is compared. A path beyond them matches every pattern.
const (
	maxDecodings   = 8   // rounds of percent-decoding until nothing changes
	maxOddSegments = 256 // segments of a path that has several readings
	maxInner       = 16  // segments that decoding makes of one
)

// paths is a request's path as routers may read it.
type paths struct {
	every bool // it matches every pattern
	two   bool // there are two forms
	forms [2]form
	room  [8]segment // for the segments of usual paths
}

// form is one text of the path: as the client wrote it, or as the server
// decoded it.
type form struct {
	segments []segment
	odd      bool // it has several readings
}

// segment is a part of a path between slashes, decoded until nothing changes,
// in lower case.
type segment struct {
	text  string
	inner bool // text has slashes: whether they separate segments is up to the router
}

// optional says that some routers drop the segment.
func (s segment) optional() bool { return s.text == "" || s.text == "." }

// pathsOf returns what routers may read a request's path as.
func pathsOf(r core.Request) *paths {
	m := remembered(r)
	if m != nil && m.paths != nil {
		return m.paths
	}
	p := new(paths)
	if m != nil {
		m.paths = p
	}
	escaped, decoded := r.EscapedPath(), r.Path()
	if escaped == "" {
		escaped = decoded
	}
	p.forms[0] = p.read(escaped, p.room[:0])
	// Without an escape both are the same, unless a middleware has changed one.
	if p.two = decoded != escaped; p.two {
		p.forms[1] = p.read(decoded, nil)
	}
	return p
}

// openedBy returns what a route such as /files* makes of a path: the text before the
// star and what follows it are segments, although no slash separates them. Echo's
// Static registers such a route, which serves the file x for /filesx. It returns
// nil for other routes.
func openedBy(route string, r core.Request) *paths {
	before, found := strings.CutSuffix(route, "*")
	begin := strings.IndexByte(before, '/')
	if !found || begin < 0 || strings.HasSuffix(before, "/") || strings.ContainsAny(before, ":*{") {
		return nil
	}
	p, n, before := new(paths), 0, before[begin:]
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

// read cuts a path at its slashes.
func (p *paths) read(text string, room []segment) form {
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

// fold maps all spellings of a segment to one: whatever a router decodes, once
// or twice, with a plus as a space or as a plus, has the same fold.
func (p *paths) fold(s string) string {
	for range maxDecodings {
		if !strings.ContainsAny(s, "%+") {
			return trimDots(strings.ToLower(s))
		}
		decoded := decode(s)
		if decoded == s {
			return trimDots(strings.ToLower(s))
		}
		s = decoded
	}
	p.every = true
	return s
}

// trimDots removes the dots at the end of a segment that has other characters:
// Fiber's Static for /files takes /files./x for the file ./x.
func trimDots(s string) string {
	if trimmed := strings.TrimRight(s, "."); trimmed != "" && !strings.ContainsFunc(s, isSlash) {
		return trimmed
	}
	return s
}

// decode undoes one round of percent-encoding, as a form's value is decoded.
// What is no escape stays: not every server refuses it.
func decode(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b = append(b, ' ')
		case s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			b = append(b, s[i])
		}
	}
	return string(b)
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
