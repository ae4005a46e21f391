package fiberlimit

import (
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

func (r request) HeaderValues(name string) []string {
	lines := r.c.Request().Header.PeekAll(name)
	if len(lines) == 0 {
		return nil
	}
	values := make([]string, len(lines))
	for i, line := range lines {
		values[i] = string(line)
	}
	return values
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
