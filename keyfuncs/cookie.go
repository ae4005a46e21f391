package keyfuncs

import (
	"net/url"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// Cookie returns a key function for the value of a cookie. The key is empty if the
// request has no such cookie. Cookie panics if name is empty.
//
// The key function decodes percent-escapes in the value, as Gin does: sid=abc and
// sid=%61bc share a quota. The error wraps [core.ErrBadRequest] if handlers could read
// different values:
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
			return dst, refused("cookie", name, err)
		}
		return append(dst, v...), nil
	}
}

// sameForHandlers returns an error if the framework reads another value of the cookie
// than value, which was read in the header. fasthttp may: it writes the header anew
// after a handler has read a cookie.
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

// cookieText returns the decoded text of a cookie's value. It returns an error for
// values that net/http and fasthttp read differently: those that begin with white
// space, and those with characters for which net/http drops the cookie.
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
