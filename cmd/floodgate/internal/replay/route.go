package replay

import (
	"strings"
	"unicode"
)

// routeOf returns the route of a path: parts that look like identifiers become
// {id}.
func routeOf(method, path string) string {
	var b strings.Builder
	b.WriteString(method)
	b.WriteByte(' ')
	for i, segment := range strings.Split(path, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		if i > 8 {
			b.WriteString("...")
			break
		}
		if identifier(segment) {
			segment = "{id}"
		}
		b.WriteString(segment)
	}
	if b.Len() > 200 {
		return strings.ToValidUTF8(b.String()[:200], "") + "..."
	}
	return b.String()
}

// identifier reports whether a part of a path looks like an identifier: a
// number, or a long text with digits, such as a UUID or a hash.
func identifier(s string) bool {
	digits := 0
	for _, c := range s {
		switch {
		case unicode.IsDigit(c):
			digits++
		case c == '-' || c == '_':
		case !unicode.IsLetter(c):
			return false
		}
	}
	return digits > 0 && (digits == len(s) || len(s) >= 16 && digits >= 3)
}
