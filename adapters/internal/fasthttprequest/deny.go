package fasthttprequest

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/core"
)

// Deny writes the response to a request that a handler denies because of a decision of its own.
func (m *Major) Deny(f Ctx, fast *fasthttp.RequestCtx, d core.Decision) {
	setHeaders(fast, &d)
	deny(fast, d.Denial(&Request{major: m, fiber: f, fast: fast}))
}

// setHeaders sets a decision's header lines. It adds rate limit headers to those of other limiters.
// It replaces Cache-Control and Retry-After, which may have one line only.
func setHeaders(fast *fasthttp.RequestCtx, d *core.Decision) {
	var buf [8]core.Header
	lines := d.AppendHeaders(buf[:0])
	if len(lines) == 0 {
		return
	}
	header := &fast.Response.Header
	// Add changes each letter of a name into its canonical case. SetCanonical does not.
	keys := header.PeekKeys()
	adds := slices.ContainsFunc(lines, func(line core.Header) bool { return has(keys, line.Name) })
	for _, line := range lines {
		if adds && line.Name != "Cache-Control" && line.Name != "Retry-After" {
			header.Add(line.Name, line.Value)
		} else {
			header.SetCanonical(bytesOf(line.Name), bytesOf(line.Value))
		}
	}
}

// has reports whether a name, which is in the canonical form, is among those of a header.
func has(keys [][]byte, name string) bool {
	for _, key := range keys {
		if string(key) == name {
			return true
		}
	}
	return false
}

// bytesOf returns the bytes of s, which nobody may change.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// deny writes the response to a denied request.
func deny(fast *fasthttp.RequestCtx, denial core.Denial) {
	setDenialHeader(fast, denial, false)
	fast.Response.SetStatusCode(denial.Status)
	fast.Response.SetBody(denial.Body) // fasthttp sends none for HEAD, 204 and 304
}

// setDenialHeader sets the header lines of a denial. If a handler writes the body, the Content-Type
// is left out.
func setDenialHeader(fast *fasthttp.RequestCtx, denial core.Denial, handler bool) {
	header := &fast.Response.Header
	if fast.Request.IsBodyStream() {
		// fasthttp would read the rest of the body as the next request.
		fast.SetConnectionClose()
	}
	keys := header.PeekKeys()
	for _, name := range []string{"Etag", "Last-Modified"} { // they describe the body of another response
		if has(keys, name) {
			header.Del(name)
		}
	}
	for _, line := range denial.Header {
		switch {
		case line.Name != "Content-Type" && !strings.EqualFold(line.Name, "Content-Type"):
			header.Set(line.Name, line.Value)
		case handler:
		case strings.Contains(line.Value, "\n") || strings.Contains(line.Value, "\r"):
			header.Set(line.Name, line.Value) // replaces the line breaks
		default:
			header.SetContentType(line.Value)
		}
	}
}
