package keyfuncs

import (
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// Query returns a key function for a parameter of the URL's query. The key is empty if
// the query has no such parameter. Query panics if name is empty.
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
			return dst, refused("query parameter", name, err)
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
		key, keyOK := decode(key)
		v, valueOK := decode(rest)
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
		if pair != "" && s.inPair(pair) {
			return true
		}
	}
	return false
}

// inPair reports whether a reader may find the field in a part of a query. A semicolon
// separates parameters too, because http.AllowQuerySemicolons replaces it by an
// ampersand.
func (s *spelling) inPair(pair string) bool {
	for part := range strings.SplitSeq(pair, ";") {
		key, _, _ := strings.Cut(part, "=")
		if key, _ = decode(key); s.matches(key) {
			return true
		}
	}
	return false
}
