package fasthttprequest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"

	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/core"
)

// nextAndSettle runs the handlers behind the limiter and passes the outcome of the
// request to the checker. It does not recover a panic, so that the panic keeps its stack.
func (m *Middleware) nextAndSettle(r *Request, d core.Decision) error {
	f, fast := r.fiber, r.fast
	r.ctx = m.major.Context(f)
	panicked := true
	var failed error
	defer func() {
		response := adapter.Response{
			Status:   fast.Response.StatusCode(),
			Ended:    m.major.ended(f, fast, r.ctx, failed),
			Panicked: panicked,
			Header:   func(name string) string { return string(fast.Response.Header.Peek(name)) },
		}
		switch {
		case panicked:
			response.Status = http.StatusInternalServerError
		case fast.Hijacked():
			response.Status = http.StatusSwitchingProtocols
		}
		m.checker.Settle(r, d, response.Outcome())
		r.free()
	}()
	if failed = f.Next(); failed != nil {
		// The response is not known before the application's ErrorHandler has
		// returned. Fiber's own logger calls it in the same way.
		m.major.HandleError(f, failed)
	}
	panicked = false
	return nil
}

// SetCost sets the cost of a request for all decisions on it. It returns false if none of
// them is settled by it, and if a stream writer calls it: Fiber may have given the context
// to another request. request is not called then.
func SetCost(request func() *fasthttp.RequestCtx, cost int64) bool {
	if inStream() {
		return false
	}
	fast := request()
	return fast != nil && Exposed(fast).SetCost(cost) // nil: Fiber has taken its context back
}

// DecisionFrom returns the innermost decision that is stored for a request, none in a stream
// writer: see SetCost.
func DecisionFrom(request func() *fasthttp.RequestCtx) (core.Decision, bool) {
	if inStream() {
		return core.Decision{}, false
	}
	fast := request()
	if fast == nil { // Fiber has taken its context back
		return core.Decision{}, false
	}
	return Exposed(fast).Last()
}

// inStream reports whether the caller runs in a stream writer of fasthttp, or in a reader
// whose text fasthttp sends.
func inStream() bool {
	var callers [256]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		name, _ := strings.CutPrefix(frame.Function, "github.com/valyala/fasthttp.")
		if strings.HasPrefix(name, "NewStreamReader.") || name == "(*Response).writeBodyStream" {
			return true
		}
		if !more {
			return false
		}
	}
}

// ended reports whether the request's context ended before a response was begun. before
// is the user context when the handlers behind the limiter were called, and failed their
// error. Fiber sends the response after the handlers. So if before has ended, it ended
// before the response. fasthttp does not report a closed connection. Its own context ends
// at shutdown, and a written response is still sent.
func (m *Major) ended(f Ctx, fast *fasthttp.RequestCtx, before context.Context, failed error) bool {
	if before.Err() != nil {
		return true
	}
	if written(fast) {
		return false
	}
	return adapter.Ended(before, m.Context(f)) || adapter.IsContextError(failed) || shutDown(fast) || dropped(fast)
}

// written reports whether a handler has written a response: it differs from the response
// that a client gets if no handler writes anything.
func written(fast *fasthttp.RequestCtx) bool {
	r := &fast.Response
	return r.StatusCode() != http.StatusOK || r.IsBodyStream() || len(r.Body()) > 0 || fast.Hijacked()
}

// dropped reports whether a handler has closed the connection without a response, as Fiber
// v3's Drop does. fasthttp sets the Content-Length when it writes a response, as Fiber v3's
// End makes it do before it closes the connection.
func dropped(fast *fasthttp.RequestCtx) bool {
	return len(fast.Response.Header.Peek(fasthttp.HeaderContentLength)) == 0 && closed(fast.Conn())
}

// closed reports whether this process has closed a connection of TCP, of a Unix socket, or of TLS
// over one. It sends nothing.
func closed(conn net.Conn) bool {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	own, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := own.SyscallConn()
	if err == nil {
		err = raw.Control(func(uintptr) {})
	}
	return errors.Is(err, net.ErrClosed)
}

// shutDown reports whether the server is shutting down. It returns false for a context
// without a connection, which unit tests make.
func shutDown(fast *fasthttp.RequestCtx) bool { return fast.Conn() != nil && fast.Err() != nil }
