package httprequest

import (
	"net/http"

	"github.com/floodgate-go/floodgate/core"
)

// SetHeaders sets a decision's header lines. Rate limit headers are added to
// those of other limiters; there is one word on caching and retrying.
func SetHeaders(header http.Header, d *core.Decision) {
	var buf [8]core.Header
	lines := d.AppendHeaders(buf[:0])
	if len(lines) == 0 {
		return
	}
	values := make([]string, 0, len(lines)) // of all lines: one allocation
	for _, line := range lines {
		if before := header[line.Name]; len(before) > 0 && line.Name != "Cache-Control" && line.Name != "Retry-After" {
			header[line.Name] = append(before, line.Value)
			continue
		}
		values = append(values, line.Value)
		header[line.Name] = values[len(values)-1 : len(values) : len(values)]
	}
}

// Refuse writes the response to a refused request, whose decision's headers
// have been set. Where handler is not nil it writes status and body. The
// request's body is not read.
func Refuse(w http.ResponseWriter, r *http.Request, denial core.Denial, handler func()) {
	header := w.Header()
	// What describes another body than the one that is sent.
	for _, name := range []string{"Content-Length", "Etag", "Last-Modified"} {
		delete(header, name)
	}
	if r.ProtoMajor == 1 && Unread(r) {
		// Without this net/http would wait for the body before it answers, to
		// use the connection again.
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
	if r.Method != http.MethodHead && denial.Status != http.StatusNoContent && denial.Status != http.StatusNotModified {
		_, _ = w.Write(denial.Body) // the client may be gone
	}
}
