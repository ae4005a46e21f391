// Package accesslog reads the access logs of web servers: the common and the
// combined format, and lines of JSON as nginx, Caddy and Traefik write them.
// The format of each line is detected separately.
package accesslog

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Entry is a line of a log.
type Entry struct {
	Time   time.Time
	Addr   string // of the client, with or without a port; "" if there is none
	User   string // "" if there is none
	Method string
	Target string // of the request line: a path with its query, as it was sent
	Route  string // as a router has named it; "" if there is none

	referer, agent string
	doc            map[string]any // of a line of JSON
}

// The errors of Parse.
var (
	ErrFormat  = errors.New("is neither in the common or combined format nor JSON")
	ErrTime    = errors.New("has no time that can be read")
	ErrRequest = errors.New("has no request line")
)

// Formats names the formats of logs that can be read.
const Formats = "the common or combined format, or lines of JSON as nginx, Caddy and Traefik write them; plain or compressed by gzip"

// Fields names fields of JSON lines that nginx, Caddy and Traefik do not write. The keys are
// FieldNames. The values are paths such as request.method.
type Fields map[string]string

// FieldNames are the names that Fields may have.
var FieldNames = []string{"time", "addr", "user", "method", "target", "route"}

// Parse reads a line, without its end.
func Parse(line string, f Fields) (Entry, error) {
	line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")) // a file's byte order mark
	if strings.HasPrefix(line, "{") {
		return parseJSON(line, f)
	}
	return parseCommon(line)
}

// Header returns the value of a header of the request. known is false if the log does not
// record this header, so that the request may have had it.
func (e *Entry) Header(name string) (value string, known bool) {
	if e.doc != nil {
		return e.jsonHeader(name)
	}
	switch http.CanonicalHeaderKey(name) {
	case "Referer":
		value = e.referer
	case "User-Agent":
		value = e.agent
	default:
		return "", false
	}
	return value, value != ""
}

// dash returns "" for "-", which logs write for an absent value.
func dash(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

// request cuts a request line into its method and target.
func (e *Entry) request(line string) error {
	method, rest, _ := strings.Cut(line, " ")
	if method == "" || strings.IndexFunc(method, func(c rune) bool { return c < '!' || c >= 0x7f || strings.ContainsRune(`\"(),/:;<=>?@[]{}`, c) }) >= 0 {
		return ErrRequest
	}
	e.Method, e.Target = method, rest
	if i := strings.LastIndex(rest, " HTTP/"); i >= 0 {
		e.Target = rest[:i]
	}
	if e.Target == "" {
		return ErrRequest
	}
	return nil
}

// commonTime is how the common log format writes a time.
const commonTime = "02/Jan/2006:15:04:05 -0700"

// parseCommon reads
//
//	host ident user [time] "request" status bytes "referer" "agent"
//
// Only the combined format has the last two. More fields may follow.
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
	if _, err := strconv.Atoi(status); err != nil && status != "-" {
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

// quoted reads a text in quotes. Servers escape quotes, backslashes and bytes that cannot be
// printed as Go does.
func quoted(s string) (text, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return "", s, false
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			if text, err := strconv.Unquote(s[:i+1]); err == nil {
				return text, s[i+1:], true
			}
			return s[1:i], s[i+1:], true // it has other escapes, which stay
		}
	}
	return "", s, false
}
