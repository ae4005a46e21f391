package fasthttprequest

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/core"
)

// Refuse writes the response to a request that a handler denies because of a decision of
// its own.
func (m *Major) Refuse(f Ctx, fast *fasthttp.RequestCtx, d core.Decision) {
	setHeaders(fast, &d)
	refuse(fast, d.Denial(&Request{major: m, fiber: f, fast: fast}))
}

// setHeaders sets a decision's header lines. It adds rate limit headers to those of other
// limiters. It replaces Cache-Control and Retry-After, which may have one line only.
func setHeaders(fast *fasthttp.RequestCtx, d *core.Decision) {
	var buf [8]core.Header
	header := &fast.Response.Header
	for _, line := range d.AppendHeaders(buf[:0]) {
		if line.Name == "Cache-Control" || line.Name == "Retry-After" {
			header.Set(line.Name, line.Value)
		} else {
			header.Add(line.Name, line.Value)
		}
	}
}

// refuse writes the response to a denied request.
func refuse(fast *fasthttp.RequestCtx, denial core.Denial) {
	setDenialHeader(fast, denial, false)
	fast.Response.SetStatusCode(denial.Status)
	fast.Response.SetBody(denial.Body) // fasthttp sends none for HEAD, 204 and 304
}

// setDenialHeader sets the header lines of a denial. If a handler writes the body, the Content-Type is left out.
func setDenialHeader(fast *fasthttp.RequestCtx, denial core.Denial, handler bool) {
	header := &fast.Response.Header
	if fast.Request.IsBodyStream() {
		// fasthttp would read the rest of the body as the next request.
		fast.SetConnectionClose()
	}
	for _, name := range []string{"Etag", "Last-Modified"} { // they describe the body of another response
		header.Del(name)
	}
	for _, line := range denial.Header {
		if !handler || !strings.EqualFold(line.Name, "Content-Type") {
			header.Set(line.Name, line.Value)
		}
	}
}
