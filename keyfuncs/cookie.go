package keyfuncs

import (
	"net/url"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// Cookie keys by the cookie of that name; without the cookie the key is empty.
// It panics if name is empty.
//
// Gin undoes percent-escapes in a cookie's value, and so does Cookie, with every
// framework: sid=abc and sid=%61bc share a quota. The request is refused with
// [core.ErrBadRequest] if handlers could read different values: the cookie is
// given twice with different values, its name is spelled differently (in another
// letter case, or with brackets), an escape is malformed, the value has
// characters that a cookie must not have, or the framework reads another value
// than the header has.
func Cookie(name string) core.KeyFunc {
	mustHave("Cookie", "name", name != "")
	s := spellingOf(name)
	return func(dst []byte, r core.Request) ([]byte, error) {
		lines := r.HeaderValues("Cookie")
		if len(lines) == 0 { // also of a request that is not HTTP
			v, _ := r.Cookie(name)
			return append(dst, v...), nil
		}
		v, err := s.cookieValue(lines)
		if err == nil {
			err = s.sameForHandlers(r, v)
		}
		if err != nil {
			return dst, refused("cookie", name, err)
		}
		return append(dst, v...), nil
	}
}

// sameForHandlers returns an error if the framework's own reader finds another
// value than the lines of the header have. fasthttp can: it puts the header
// together anew once a handler has read a cookie.
func (s *spelling) sameForHandlers(r core.Request, value string) error {
	raw, read := r.Cookie(s.name)
	if !read {
		if value != "" {
			return faultDiffers
		}
		return nil
	}
	// Some readers take the quotes off, others do not.
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
		return "", faultMany // net/http reads none of too many cookies
	}
	return value, nil
}

// cookieText returns the text of a cookie's value. What net/http and fasthttp
// read differently is refused: white space before the value, and characters for
// which net/http drops the cookie.
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
