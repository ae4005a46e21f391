// Package fasthttprequest has the code that the adapters for the majors of Fiber share: a
// core.Request around a fasthttp.RequestCtx, the middleware, and the response to a denied
// request. It imports fasthttp and no Fiber: an adapter describes its major as a [Major].
package fasthttprequest

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/core"
)

// Request is the core.Request of a Fiber context. Requests are reused, so that their
// conversion to an interface does not allocate. Fiber's strings are parts of buffers that
// Fiber reuses, so that the methods return copies.
type Request struct {
	major *Major
	fiber Ctx
	fast  *fasthttp.RequestCtx
	text  strings.Builder // see RemoteAddr
	ctx   context.Context //nolint:containedctx // see Context; nil: the application's
}

var _ core.Request = (*Request)(nil)

var requests = sync.Pool{New: func() any { return new(Request) }}

func newRequest(m *Major, f Ctx, fast *fasthttp.RequestCtx) *Request {
	r := requests.Get().(*Request)
	r.major, r.fiber, r.fast, r.ctx = m, f, fast, nil
	return r
}

// free gives a request back after its decision, or if the decision needs an outcome, after
// that. It keeps its Fiber context, so that a hook that has kept the request does not panic.
// Such a hook may see another request.
func (r *Request) free() { requests.Put(r) }

// Context returns the context that the application has set. In Settle, it is the one that
// the request had before the handlers ran: Fiber v3's middleware for timeouts leaves a
// goroutine behind that sets the application's context again.
func (r *Request) Context() context.Context {
	if r.ctx != nil {
		return r.ctx
	}
	return r.major.Context(r.fiber)
}

// Path implements core.Request.
func (r *Request) Path() string { return strings.Clone(r.fiber.Path()) }

// Method implements core.Request.
func (r *Request) Method() string {
	m := r.fiber.Method()
	for _, known := range r.major.Methods {
		if m == known {
			return known
		}
	}
	return strings.Clone(m)
}

// Route returns the pattern of the route for which the middleware runs. It returns "" if
// the middleware is mounted with Use. Such a middleware runs before Fiber has matched the
// route, and Fiber's Route is then the prefix that was given to Use.
func (r *Request) Route() string { return strings.Clone(r.major.Route(r.fiber)) }

// PathValue returns the value of a parameter of the route for which the middleware runs.
func (r *Request) PathValue(name string) string { return strings.Clone(r.fiber.Params(name)) }

// textBlock is the number of bytes that RemoteAddr allocates at a time.
const textBlock = 1024

// RemoteAddr writes the texts of addresses one behind the other into a block of memory, so
// that there is one allocation for many of them. A block never changes what it has.
func (r *Request) RemoteAddr() string {
	addr := r.fast.RemoteAddr()
	tcp, _ := addr.(*net.TCPAddr)
	a := tcp.AddrPort()
	if !a.IsValid() { // not a TCP address, or one without an IP
		return addr.String()
	}
	var buf [64]byte                                                         // longer than any address but one with a long zone
	text := netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).AppendTo(buf[:0]) // the text of String
	if r.text.Cap()-r.text.Len() < len(text) {
		r.text.Reset() // the texts in the old block stay
		r.text.Grow(textBlock)
	}
	from := r.text.Len()
	r.text.Write(text)
	return r.text.String()[from:]
}

// HeaderValues returns as Host what Fiber's Host and Hostname return, in lower case. If the target
// has the absolute form, that is the target's host: a client can write any other one into the
// header. If the header has a line of that name, HeaderValues leaves out those of the trailer,
// which fasthttp appends to the header of a chunked request. A proxy writes its line into the
// header, and a client can write the same line into the trailer.
func (r *Request) HeaderValues(name string) []string {
	if strings.EqualFold(name, fasthttp.HeaderHost) {
		if host := r.fast.Host(); len(host) > 0 {
			return []string{string(host)}
		}
		return nil
	}
	header := &r.fast.Request.Header
	lines := header.PeekAll(name)
	if len(lines) > 1 {
		if n, chunked := receivedLines(header.RawHeaders(), name); chunked && n > 0 && n < len(lines) {
			lines = lines[:n]
		}
	}
	if len(lines) == 0 {
		return nil
	}
	values := make([]string, len(lines))
	for i, line := range lines {
		values[i] = string(line)
	}
	return values
}

// receivedLines returns the number of lines that a header had for a name when it was
// received. chunked reports whether a trailer may follow the body.
func receivedLines(raw []byte, name string) (n int, chunked bool) {
	for line := range bytes.Lines(raw) {
		key, _, found := bytes.Cut(line, []byte(":"))
		switch {
		case !found:
		case strings.EqualFold(string(key), name):
			n++
		case strings.EqualFold(string(key), fasthttp.HeaderTransferEncoding):
			chunked = true
		}
	}
	return n, chunked
}

// Cookie implements core.Request.
func (r *Request) Cookie(name string) (string, bool) {
	v := r.fast.Request.Header.Cookie(name)
	return string(v), v != nil
}

// Query implements core.Request.
func (r *Request) Query(name string) (string, bool) {
	args := r.fast.QueryArgs()
	if !args.Has(name) {
		return "", false
	}
	return string(args.Peek(name)), true
}

// EscapedPath implements core.Request.
func (r *Request) EscapedPath() string { return string(r.fast.URI().PathOriginal()) }

// RawQuery implements core.Request.
func (r *Request) RawQuery() string { return string(r.fast.URI().QueryString()) }

// Key is the key under which Value returns Fiber's context.
type Key struct{}

// Value returns the value that is stored in Fiber's locals, or else in the user context.
func (r *Request) Value(key any) any {
	if key == any(Key{}) {
		return r.fiber
	}
	if v := r.fast.UserValue(key); v != nil {
		return v
	}
	return r.Context().Value(key)
}
