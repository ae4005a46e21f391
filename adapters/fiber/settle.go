package fiberlimit

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/floodgate-go/floodgate/adapters/internal/outcome"
	"github.com/floodgate-go/floodgate/core"
)

// nextAndSettle runs the handlers behind the limiter and passes the outcome of the
// request to the checker. It does not recover a panic, so that the panic keeps its stack.
func nextAndSettle(f *fiber.Ctx, c core.Checker, d core.Decision) error {
	before := f.UserContext()
	panicked := true
	var failed error
	defer func() {
		r := outcome.Response{
			Status:   f.Response().StatusCode(),
			Ended:    ended(f, before, failed),
			Panicked: panicked,
			Header:   func(name string) string { return string(f.Response().Header.Peek(name)) },
		}
		switch {
		case panicked:
			r.Status = http.StatusInternalServerError
		case f.Context().Hijacked():
			r.Status = http.StatusSwitchingProtocols
		}
		c.Settle(&request{c: f}, d, r.Outcome())
	}()
	if failed = f.Next(); failed != nil {
		// The response is not known before the application's ErrorHandler has
		// returned. Fiber's own logger calls it in the same way.
		if err := f.App().ErrorHandler(f, failed); err != nil {
			_ = f.SendStatus(fiber.StatusInternalServerError)
		}
	}
	panicked = false
	return nil
}

// ended reports whether the request's context ended before a response was begun. before
// is the user context when the handlers behind the limiter were called. Fiber sends the
// response after the handlers: if before has ended, it has ended before the response.
// failed is the error of the handlers. fasthttp does not tell handlers that a client has
// closed the connection. fasthttp's own context ends when the server shuts down; the
// client then still gets a response that a handler writes.
func ended(f *fiber.Ctx, before context.Context, failed error) bool {
	if before.Err() != nil {
		return true
	}
	if written(f) {
		return false
	}
	return outcome.Ended(before, f.UserContext()) || outcome.IsContextError(failed) || shutDown(f)
}

// written reports whether a handler has written a response: it differs from the response
// that a client gets if no handler writes anything.
func written(f *fiber.Ctx) bool {
	r := f.Response()
	return r.StatusCode() != http.StatusOK || r.IsBodyStream() || len(r.Body()) > 0 || f.Context().Hijacked()
}

// shutDown reports whether the server is shutting down. It returns false for a context
// without a connection, which unit tests make.
func shutDown(f *fiber.Ctx) bool {
	return f.Context().Conn() != nil && f.Context().Err() != nil
}
