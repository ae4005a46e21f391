// Package httpresponse has the responses of the adapters for net/http, Gin and Echo: the headers of
// a decision, the response to a denied request, and a response writer that records the status.
package httpresponse

import (
	"net/http"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/httprequest"
)

// SetHeaders sets the header lines of the decision on an allowed request.
func SetHeaders(header http.Header, d *core.Decision) {
	var buf [8]core.Header
	if lines := d.AppendHeaders(buf[:0]); len(lines) > 0 {
		setLines(header, lines, make([]string, 0, len(lines)))
	}
}

// setLines sets the header lines of a decision. It adds rate limit headers to those of other
// limiters. It replaces Cache-Control and Retry-After, which may have one line only. values has
// room for the values of all lines, in one allocation.
func setLines(header http.Header, lines []core.Header, values []string) []string {
	empty := len(header) == 0
	for _, line := range lines {
		if !empty && line.Name != "Cache-Control" && line.Name != "Retry-After" {
			if before := header[line.Name]; len(before) > 0 {
				header[line.Name] = append(before, line.Value)
				continue
			}
		}
		values = set(header, line.Name, line.Value, values)
	}
	return values
}

// set sets one header line, whose name is in the canonical form.
func set(header http.Header, name, value string, values []string) []string {
	values = append(values, value)
	n := len(values)
	header[name] = values[n-1 : n : n]
	return values
}

// Deny writes the response to a denied request. It does not read the request's body.
func Deny(w http.ResponseWriter, r *http.Request, d *core.Decision, denial core.Denial) {
	SetDenialHeader(w.Header(), r, d, denial, false)
	w.WriteHeader(denial.Status)
	if r.Method != http.MethodHead {
		// The client may have closed the connection. net/http sends no body with 204 and 304.
		_, _ = w.Write(denial.Body)
	}
}

// SetDenialHeader sets the header of the response to a denied request. If a handler writes the
// body, the Content-Type is left out.
func SetDenialHeader(header http.Header, r *http.Request, d *core.Decision, denial core.Denial, handler bool) {
	if len(header) > 0 {
		// These fields may describe the body of another response.
		for _, name := range []string{"Content-Length", "Etag", "Last-Modified"} {
			delete(header, name)
		}
	}
	var buf [8]core.Header
	lines := d.AppendHeaders(buf[:0])
	values := setLines(header, lines, make([]string, 0, len(lines)+len(denial.Header)))
	if r.ProtoMajor == 1 && httprequest.Unread(r) {
		// Without this, net/http would read the body before it sends the response, to reuse the
		// connection.
		header.Set("Connection", "close")
	}
	for _, line := range denial.Header {
		name := line.Name
		if name != "Content-Type" { // that of nearly all denials, in the canonical form
			name = http.CanonicalHeaderKey(name)
		}
		if !handler || name != "Content-Type" {
			values = set(header, name, line.Value, values)
		}
	}
}
