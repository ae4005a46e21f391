package accesslog

import (
	"strconv"
	"strings"
	"time"
)

// commonTime is how the common log format writes a time.
const commonTime = "02/Jan/2006:15:04:05 -0700"

// parseCommon reads
//
//	host ident user [time] "request" status bytes "referer" "agent"
//
// of which the last two are the combined format's. What follows is left alone.
func parseCommon(line string) (e Entry, err error) {
	head, rest, _ := strings.Cut(line, " [")
	stamp, rest, closed := strings.Cut(rest, "] ")
	if !closed {
		return e, ErrFormat
	}
	addr, identAndUser, _ := strings.Cut(head, " ")
	_, user, named := strings.Cut(identAndUser, " ")
	if !named {
		return e, ErrFormat
	}
	e.Addr, e.User = dash(addr), dash(user)
	if e.Time, err = time.Parse(commonTime, stamp); err != nil {
		return e, ErrTime
	}
	request, rest, ok := quoted(rest)
	if !ok {
		return e, ErrFormat
	}
	status, rest, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if e.Status, err = strconv.Atoi(status); err != nil && status != "-" || e.Status < 0 || e.Status > 999 {
		return e, ErrFormat
	}
	if _, rest, found := strings.Cut(rest, " "); found { // behind the bytes
		if e.referer, rest, ok = quoted(rest); ok {
			e.agent, _, _ = quoted(strings.TrimLeft(rest, " "))
		}
	}
	e.referer, e.agent = dash(e.referer), dash(e.agent)
	return e, e.request(request)
}

// quoted reads a text in quotes, in which servers escape quotes, backslashes
// and what is not text: \" and \\, and \xhh, which is what is undone here.
func quoted(s string) (text, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return "", s, false
	}
	escaped := false
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			text = s[1:i]
			if escaped {
				text = unescape(text)
			}
			return text, s[i+1:], true
		}
	}
	return "", s, false
}

// unescape undoes the escapes. Each backslash in s has a character behind it.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'x':
			if i+2 < len(s) {
				if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
					b.WriteByte(byte(n))
					i += 2
					continue
				}
			}
			b.WriteString(`\x`)
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
