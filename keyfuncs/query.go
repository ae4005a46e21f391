package keyfuncs

import (
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// Query keys by a parameter of the URL's query; without the parameter the key is
// empty. It panics if name is empty.
//
// The request is refused with [core.ErrBadRequest] if handlers could read
// different values: the parameter is given twice with different values, its name
// is spelled differently (in another letter case, or with other brackets), an
// escape in it is malformed, or it has a semicolon that is not escaped.
func Query(name string) core.KeyFunc {
	mustHave("Query", "name", name != "")
	s := spellingOf(name)
	return func(dst []byte, r core.Request) ([]byte, error) {
		query := r.RawQuery()
		if query == "" { // also of a request that is not HTTP
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

// queryValue returns the value of the parameter in a query.
func (s *spelling) queryValue(query string) (string, error) {
	value, found, count := "", false, 0
	for pair := range strings.SplitSeq(query, "&") {
		count++
		if strings.Contains(pair, ";") {
			if s.inPair(pair) {
				return "", faultEscape
			}
			continue
		}
		key, rest, _ := strings.Cut(pair, "=")
		key, keyOK := decode(key)
		if !s.matches(key) {
			continue
		}
		v, valueOK := decode(rest)
		switch {
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
		return "", faultMany // net/url reads nothing of a query that is longer still
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

// inPair reports whether a reader may find the field in a part of a query.
// Semicolons separate too: http.AllowQuerySemicolons makes them do so.
func (s *spelling) inPair(pair string) bool {
	for part := range strings.SplitSeq(pair, ";") {
		key, _, _ := strings.Cut(part, "=")
		if key, _ = decode(key); s.matches(key) {
			return true
		}
	}
	return false
}
