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

// request is a request as the core sees it. As it is one pointer, making an
// interface of it allocates nothing. Fiber's strings are views of buffers that
// it uses again: every one that leaves here is a copy.
type request struct{ c *fiber.Ctx }

var _ core.Request = request{}

func (r request) Context() context.Context { return r.c.UserContext() }
func (r request) Path() string             { return strings.Clone(r.c.Path()) }

func (r request) Method() string {
	m := r.c.Method()
	for _, known := range fiber.DefaultMethods {
		if m == known {
			return known
		}
	}
	return strings.Clone(m)
}

// Route returns the pattern of the route that the middleware runs for. A
// middleware that has been mounted with Use runs before Fiber has looked for the
// route: what Fiber calls its route then is the prefix given to Use, and Route
// returns "".
func (r request) Route() string {
	route := r.c.Route()
	if mountedByUse(route) {
		return ""
	}
	return strings.Clone(route.Path)
}

func (r request) RemoteAddr() string {
	addr := r.c.Context().RemoteAddr()
	if tcp, ok := addr.(*net.TCPAddr); ok {
		if a := tcp.AddrPort(); a.IsValid() { // as String writes it, with one allocation
			var buf [64]byte
			return string(netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).AppendTo(buf[:0]))
		}
	}
	return addr.String()
}

// HeaderValues leaves out lines of trailers, which fasthttp appends to the header
// of a chunked request: a proxy writes its line into the header, and a client can
// write what it likes into the trailer.
func (r request) HeaderValues(name string) []string {
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

// receivedLines returns how many lines of a name a header had as it was received,
// and whether it says that a trailer may follow the body.
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

func (r request) Cookie(name string) (string, bool) {
	v := r.c.Request().Header.Cookie(name)
	return string(v), v != nil
}

func (r request) Query(name string) (string, bool) {
	args := r.c.Context().QueryArgs()
	if !args.Has(name) {
		return "", false
	}
	return string(args.Peek(name)), true
}

func (r request) EscapedPath() string { return string(r.c.Context().URI().PathOriginal()) }

func (r request) RawQuery() string { return string(r.c.Context().URI().QueryString()) }

// Value returns what has been stored in Fiber's locals, else in the user
// context.
func (r request) Value(key any) any {
	if v := r.c.Locals(key); v != nil {
		return v
	}
	return r.c.UserContext().Value(key)
}
