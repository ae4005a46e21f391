package httprequest

import (
	"net/http"

	"github.com/floodgate-go/floodgate/core"
)

// SetHeaders sets a decision's header lines. It adds rate limit headers to those of other
// limiters. It replaces Cache-Control and Retry-After, which may have one line only.
func SetHeaders(header http.Header, d *core.Decision) {
	var buf [8]core.Header
	lines := d.AppendHeaders(buf[:0])
	if len(lines) == 0 {
		return
	}
	values := make([]string, 0, len(lines)) // the values of all lines, in one allocation
	for _, line := range lines {
		if before := header[line.Name]; len(before) > 0 && line.Name != "Cache-Control" && line.Name != "Retry-After" {
			header[line.Name] = append(before, line.Value)
			continue
		}
		values = append(values, line.Value)
		header[line.Name] = values[len(values)-1 : len(values) : len(values)]
	}
}

// Refuse writes the response to a denied request. The headers of its decision must be set
// before. If handler is not nil, handler writes the status and the body. Refuse does not
// read the request's body.
func Refuse(w http.ResponseWriter, r *http.Request, denial core.Denial, handler func()) {
	header := w.Header()
	// These fields may describe the body of another response.
	for _, name := range []string{"Content-Length", "Etag", "Last-Modified"} {
		delete(header, name)
	}
	if r.ProtoMajor == 1 && Unread(r) {
		// Without this, net/http would read the body before it sends the response,
		// to reuse the connection.
		header.Set("Connection", "close")
	}
	for _, line := range denial.Header {
		if handler == nil || http.CanonicalHeaderKey(line.Name) != "Content-Type" {
			header.Set(line.Name, line.Value)
		}
	}
	if handler != nil {
		handler()
		return
	}
	w.WriteHeader(denial.Status)
	if r.Method != http.MethodHead {
		// The client may have closed the connection. net/http sends no body with 204 and 304.
		_, _ = w.Write(denial.Body)
	}
}
