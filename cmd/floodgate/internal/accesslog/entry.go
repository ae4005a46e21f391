package accesslog

import (
	"errors"
	"net/http"
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
	Status int    // 0 if there is none
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

// Formats names the formats of lines that [Parse] reads.
const Formats = "the common or combined format, or lines of JSON as nginx, Caddy and Traefik write them"

// Fields names the fields of JSON lines if they are not those that nginx, Caddy
// and Traefik write: the keys are FieldNames, the values paths such as
// request.method.
type Fields map[string]string

// FieldNames are the names that Fields may have.
var FieldNames = []string{"time", "addr", "user", "method", "target", "status", "route"}

// Parse reads a line, without its end.
func Parse(line string, f Fields) (Entry, error) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "{") {
		return parseJSON(line, f)
	}
	return parseCommon(line)
}

// Header returns the value of a header of the request, and whether the log
// knows of it: a log that does not have a header cannot say that it was absent.
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

// dash is what logs write for nothing.
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
