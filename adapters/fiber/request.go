package fiberlimit

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/floodgate-go/floodgate/core"
)

// request is the core.Request of a Fiber context. It is a part of a visit, so that its
// conversion to an interface does not allocate. Fiber's strings are parts of buffers that
// Fiber reuses, so that the methods return copies.
type request struct {
	c    *fiber.Ctx
	text strings.Builder // see RemoteAddr
}

var _ core.Request = (*request)(nil)

func (r *request) Context() context.Context { return r.c.UserContext() }
func (r *request) Path() string             { return strings.Clone(r.c.Path()) }

func (r *request) Method() string {
	m := r.c.Method()
	for _, known := range fiber.DefaultMethods {
		if m == known {
			return known
		}
	}
	return strings.Clone(m)
}

// Route returns the pattern of the route for which the middleware runs. It returns "" if
// the middleware is mounted with Use. Such a middleware runs before Fiber has matched the
// route, and Fiber's Route is then the prefix that was given to Use.
func (r *request) Route() string {
	route := r.c.Route()
	if mountedByUse(route) {
		return ""
	}
	return strings.Clone(route.Path)
}

// textBlock is the number of bytes that RemoteAddr allocates at a time.
const textBlock = 1024

// RemoteAddr writes the texts of addresses one behind the other into a block of memory, so
// that there is one allocation for many of them. A block never changes what it has.
func (r *request) RemoteAddr() string {
	addr := r.c.Context().RemoteAddr()
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return addr.String()
	}
	a := tcp.AddrPort()
	if !a.IsValid() {
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

// HeaderValues leaves out the lines of trailers. fasthttp appends trailers to the header
// of a chunked request. A proxy writes its line into the header, and a client can write
// the same line into the trailer.
func (r *request) HeaderValues(name string) []string {
	header := &r.c.Request().Header
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
		case strings.EqualFold(string(key), fiber.HeaderTransferEncoding):
			chunked = true
		}
	}
	return n, chunked
}

func (r *request) Cookie(name string) (string, bool) {
	v := r.c.Request().Header.Cookie(name)
	return string(v), v != nil
}

func (r *request) Query(name string) (string, bool) {
	args := r.c.Context().QueryArgs()
	if !args.Has(name) {
		return "", false
	}
	return string(args.Peek(name)), true
}

func (r *request) EscapedPath() string { return string(r.c.Context().URI().PathOriginal()) }

func (r *request) RawQuery() string { return string(r.c.Context().URI().QueryString()) }

// Value returns the value that is stored in Fiber's locals, or else in the user context.
func (r *request) Value(key any) any {
	if v := r.c.Locals(key); v != nil {
		return v
	}
	return r.c.UserContext().Value(key)
}
