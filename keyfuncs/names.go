package keyfuncs

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/escapes"
)

// spelling compares the names of form fields, query parameters and cookies as the most lenient
// reader does. Echo and Fiber ignore letter case. Fiber reads brackets as dots and removes empty
// ones. Gin's PostFormMap reads user[name] and ignores the text after the bracket.
type spelling struct {
	name  string
	parts []string  // the parts of the name: user[name] has the parts user and name
	deep  bool      // a path that ends with parts matches too, and so does an end of parts
	other *spelling // another name that matches too; nil: none
}

func spellingOf(name string) spelling { return spelling{name: name, parts: pathParts(name)} }

// pathParts splits a name at dots and opening brackets. It removes empty pairs of brackets and
// closing brackets: userna[]me is one part.
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

// sameEnd reports whether the shorter path is the end of the longer one. Fiber reads
// credentials.username into the field username of an embedded struct. Gin reads name into the field
// name of any struct inside the handler's.
func sameEnd(a, b []string) bool {
	n := min(len(a), len(b))
	return samePath(a[len(a)-n:], b[len(b)-n:])
}

// matchesMap reports whether key begins with the path, with the last part in brackets. Any text may
// follow.
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

// sameName reports whether a reader may read two names as the same. Some decoders compare names
// after strings.ToLower, which maps U+0130 to i. Others compare them after strings.ToUpper, which
// maps U+0131 to I. strings.EqualFold does neither.
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

// Query returns a key function for a parameter of the URL's query. The key is empty if the query
// has no such parameter. Query panics if name is empty.
//
// The error wraps [core.ErrBadRequest] if handlers could read different values:
//   - The parameter is given twice with different values.
//   - Its name has another spelling: another letter case, or other brackets.
//   - It has a malformed escape or an unescaped semicolon.
//   - The query has more than 1,000 parameters.
func Query(name string) core.KeyFunc {
	mustHave("Query", `name: "": must be the name of a query parameter, such as "api_key"`, name != "")
	s := spellingOf(name)
	return func(dst []byte, r core.Request) ([]byte, error) {
		query := r.RawQuery()
		if query == "" { // also if the request is not an HTTP request
			v, _ := r.Query(name)
			return append(dst, v...), nil
		}
		v, err := s.queryValue(query)
		if err != nil {
			return dst, badRequest("query parameter", name, err)
		}
		return append(dst, v...), nil
	}
}

// queryValue returns the value of the parameter in a query, or "" if there is none.
func (s *spelling) queryValue(query string) (string, error) {
	value, found, count := "", false, 0
	for pair := range strings.SplitSeq(query, "&") {
		count++
		if !s.inPair(pair) {
			continue
		}
		key, rest, _ := strings.Cut(pair, "=")
		key, keyOK := escapes.Decode(key)
		v, valueOK := escapes.Decode(rest)
		switch {
		case strings.Contains(pair, ";"):
			return "", faultEscape
		case key != s.name:
			return "", faultSpelling
		case !keyOK || !valueOK:
			return "", faultEscape
		case found && v != value:
			return "", faultDiffers
		}
		value, found = v, true
	}
	if found && count > maxFields {
		return "", faultMany // net/url reads no parameter if there are too many
	}
	return value, nil
}

// inQuery reports whether a reader may find the field in a query.
func (s *spelling) inQuery(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		if s.inPair(pair) {
			return true
		}
	}
	return false
}

// inPair reports whether a reader may find the field in a part of a query. A semicolon separates
// parameters too, because http.AllowQuerySemicolons replaces it by an ampersand.
func (s *spelling) inPair(pair string) bool {
	for part := range strings.SplitSeq(pair, ";") {
		key, _, _ := strings.Cut(part, "=")
		if key, _ = escapes.Decode(key); s.matches(key) {
			return true
		}
	}
	return false
}

// Cookie returns a key function for the value of a cookie. The key is empty if the request has no
// such cookie. Cookie panics if name is empty.
//
// The key function decodes percent-escapes in the value, as Gin does: sid=abc and sid=%61bc share a
// quota. The error wraps [core.ErrBadRequest] if handlers could read different values:
//   - The cookie is given twice with different values.
//   - Its name has another spelling: another letter case, or brackets.
//   - An escape is malformed, or the value has characters that a cookie must not have.
//   - The header has more than 1,000 cookies.
//   - The framework reads another value than the header has.
func Cookie(name string) core.KeyFunc {
	mustHave("Cookie", `name: "": must be the name of a cookie, such as "session"`, name != "")
	s := spellingOf(name)
	return func(dst []byte, r core.Request) ([]byte, error) {
		lines := r.HeaderValues("Cookie")
		if len(lines) == 0 { // also if the request is not an HTTP request
			v, _ := r.Cookie(name)
			return append(dst, v...), nil
		}
		v, err := s.cookieValue(lines)
		if err == nil {
			err = s.sameForHandlers(r, v)
		}
		if err != nil {
			return dst, badRequest("cookie", name, err)
		}
		return append(dst, v...), nil
	}
}

// sameForHandlers returns an error if the framework reads another value of the cookie than value,
// which was read in the header. fasthttp may: it writes the header anew after a handler has read a
// cookie.
func (s *spelling) sameForHandlers(r core.Request, value string) error {
	raw, read := r.Cookie(s.name)
	if !read {
		if value != "" {
			return faultDiffers
		}
		return nil
	}
	// Some readers remove the quotes around a value, others do not.
	if text, err := url.QueryUnescape(raw); err == nil && text == value {
		return nil
	}
	if text, err := cookieText(raw); err == nil && text == value {
		return nil
	}
	return faultDiffers
}

// cookieValue returns the value of the cookie in the lines of the header.
func (s *spelling) cookieValue(lines []string) (string, error) {
	value, found, count := "", false, 0
	for _, line := range lines {
		for pair := range strings.SplitSeq(line, ";") {
			count++
			key, raw, _ := strings.Cut(pair, "=")
			if !s.matches(strings.Trim(key, " \t")) {
				continue
			}
			if strings.Trim(key, " ") != s.name { // fasthttp does not trim tabs
				return "", faultSpelling
			}
			v, err := cookieText(raw)
			if err != nil {
				return "", err
			}
			if found && v != value {
				return "", faultDiffers
			}
			value, found = v, true
		}
	}
	if found && count > maxFields {
		return "", faultMany // net/http reads no cookie if there are too many
	}
	return value, nil
}

// cookieText returns the decoded text of a cookie's value. It returns an error for values that
// net/http and fasthttp read differently: those that begin with white space, and those with
// characters for which net/http drops the cookie.
func cookieText(raw string) (string, error) {
	raw = strings.TrimRight(raw, " ")
	if len(raw) > 1 && raw[0] == '"' && raw[len(raw)-1] == '"' {
		raw = raw[1 : len(raw)-1]
	} else if strings.HasPrefix(raw, " ") {
		return "", faultUnreadable
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' || r >= 0x7f || r == '"' || r == '\\' }) {
		return "", faultUnreadable
	}
	text, err := url.QueryUnescape(raw)
	if err != nil {
		return "", faultEscape
	}
	return text, nil
}

// fault is what is wrong with a field. It is the end of a sentence that begins with the field's
// name.
type fault string

// Error implements error.
func (f fault) Error() string { return string(f) }

const (
	faultTwice      fault = "is given twice"
	faultInQuery    fault = "must not be in the URL's query"
	faultUnreadable fault = "cannot be read"
	faultEscape     fault = "is not escaped correctly"
	faultBody       fault = "cannot be read: send a form or JSON, not compressed, of at most 64 KiB"
	faultMany       fault = "cannot be read: there are too many fields"
	faultSpelling   fault = "is given with another spelling of its name"
	faultDiffers    fault = "is given twice with different values"
)

// badRequest returns the error for a request that is at fault. Its Detail, which the client may
// see, has the kind, the name and the fault. Kind and name are configuration.
func badRequest(kind, name string, err error) error {
	var detail *core.BadRequestError
	var f fault
	switch {
	case errors.As(err, &f):
		return &core.BadRequestError{Detail: fmt.Sprintf("the %s %q %s", kind, name, f)}
	case errors.As(err, &detail):
		return &core.BadRequestError{Detail: fmt.Sprintf("the %s %q: %s", kind, name, detail.Detail)}
	default:
		return fmt.Errorf("%w: %w", badRequest(kind, name, faultUnreadable), err)
	}
}
