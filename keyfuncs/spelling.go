package keyfuncs

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// spelling compares the names of form fields, query parameters and cookies as the most
// lenient reader does. Echo and Fiber ignore letter case. Fiber reads brackets as dots
// and removes empty ones. Gin's PostFormMap reads user[name] and ignores the text after
// the bracket.
type spelling struct {
	name  string
	parts []string  // the parts of the name: user[name] has the parts user and name
	deep  bool      // a path that ends with parts matches too, and so does an end of parts
	other *spelling // another name that matches too; nil: none
}

func spellingOf(name string) spelling { return spelling{name: name, parts: pathParts(name)} }

// pathParts splits a name at dots and opening brackets. It removes empty pairs of
// brackets and closing brackets: userna[]me is one part.
func pathParts(name string) []string {
	if !strings.ContainsAny(name, "[].") {
		return []string{name}
	}
	dotted := strings.NewReplacer("[]", "", "[", ".", "]", "").Replace(name)
	parts := slices.DeleteFunc(strings.Split(dotted, "."), func(part string) bool { return part == "" })
	if len(parts) == 0 {
		return []string{name}
	}
	return parts
}

// matches reports whether a reader may read key as the name.
func (s *spelling) matches(key string) bool {
	if key == s.name || s.other != nil && s.other.matches(key) {
		return true
	}
	if !strings.ContainsAny(key, "[].") {
		return (len(s.parts) == 1 || s.deep) && sameName(key, s.parts[len(s.parts)-1])
	}
	parts := pathParts(key)
	if s.deep {
		return sameEnd(parts, s.parts) || s.matchesMap(key)
	}
	return samePath(parts, s.parts) || s.matchesMap(key)
}

// sameEnd reports whether the shorter path is the end of the longer one. Fiber
// reads credentials.username into the field username of an embedded struct. Gin
// reads name into the field name of any struct inside the handler's.
func sameEnd(a, b []string) bool {
	n := min(len(a), len(b))
	return samePath(a[len(a)-n:], b[len(b)-n:])
}

// matchesMap reports whether key begins with the path, with the last part in brackets.
// Any text may follow.
func (s *spelling) matchesMap(key string) bool {
	last := len(s.parts) - 1
	for i := range len(key) {
		if key[i] != '[' {
			continue
		}
		inside, _, _ := strings.Cut(key[i+1:], "]")
		if sameName(inside, s.parts[last]) && samePath(pathParts(key[:i]), s.parts[:last]) {
			return true
		}
	}
	return false
}

func samePath(a, b []string) bool { return slices.EqualFunc(a, b, sameName) }

// sameName reports whether a reader may read two names as the same. Some decoders
// compare names after strings.ToLower, which maps U+0130 to i. Others compare them after
// strings.ToUpper, which maps U+0131 to I. strings.EqualFold does neither.
func sameName(a, b string) bool {
	return strings.EqualFold(a, b) ||
		!(isASCII(a) && isASCII(b)) && (strings.EqualFold(strings.ToLower(a), strings.ToLower(b)) || strings.EqualFold(strings.ToUpper(a), strings.ToUpper(b)))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// decode decodes the escapes of a name or a value in a query or a form. ok is false if
// an escape is malformed. net/url drops such a field. fasthttp and decode leave the bytes
// of the escape as they are.
func decode(s string) (text string, ok bool) {
	at := strings.IndexAny(s, "%+")
	if at < 0 {
		return s, true
	}
	ok = true
	b := append(make([]byte, 0, len(s)), s[:at]...)
	for ; at < len(s); at++ {
		switch c := s[at]; {
		case c == '+':
			b = append(b, ' ')
		case c != '%':
			b = append(b, c)
		case at+2 < len(s) && isHex(s[at+1]) && isHex(s[at+2]):
			b = append(b, unhex(s[at+1])<<4|unhex(s[at+2]))
			at += 2
		default:
			b, ok = append(b, c), false
		}
	}
	return string(b), ok
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
