package keyfuncs

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// spelling compares names of form fields, query parameters and cookies as the
// most lenient reader does. Echo and Fiber ignore letter case. Fiber takes
// brackets for dots and drops empty ones. Gin's PostFormMap reads user[name] and
// ignores what follows the bracket.
type spelling struct {
	name  string
	parts []string  // of the path that the name is: user[name] is user, name
	deep  bool      // a longer path that ends with parts counts too, and so do the last of parts
	other *spelling // counts as the name too; nil: none
}

func spellingOf(name string) spelling { return spelling{name: name, parts: pathParts(name)} }

// pathParts splits a name at dots and brackets. An empty pair of brackets and
// a closing one separate nothing: userna[]me is one part.
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

// matches reports whether a reader may take key for the name.
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

// matchesMap reports whether key is the last part of the path in brackets,
// behind the rest of the path, with anything after it.
func (s *spelling) matchesMap(key string) bool {
	last := len(s.parts) - 1
	for i := range len(key) {
		if key[i] != '[' {
			continue
		}
		inside, _, closed := strings.Cut(key[i+1:], "]")
		if closed && sameName(inside, s.parts[last]) && samePath(pathParts(key[:i]), s.parts[:last]) {
			return true
		}
	}
	return false
}

func samePath(a, b []string) bool { return slices.EqualFunc(a, b, sameName) }

// sameName reports whether a reader may take two names for the same. Some
// decoders compare names after strings.ToLower, which makes an i of U+0130, as
// strings.ToUpper makes an I of U+0131; neither is strings.EqualFold's.
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

// decode undoes the escapes of a name or a value in a query or in a form. ok is
// false if one is malformed: net/url then drops the field, and fasthttp takes
// the bytes of the escape as they are, as decode does.
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
