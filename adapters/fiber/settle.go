package fiberlimit

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/floodgate-go/floodgate/adapters/internal/outcome"
	"github.com/floodgate-go/floodgate/core"
)

// nextAndSettle runs the handlers behind this one and reports what became of
// the request. A panic goes on with its own stack: it is not recovered here.
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
		c.Settle(request{f}, d, r.Outcome())
	}()
	if failed = f.Next(); failed != nil {
		// What the client sees is known only when the application's error
		// handler has been asked, as Fiber's own logger does.
		if err := f.App().ErrorHandler(f, failed); err != nil {
			_ = f.SendStatus(fiber.StatusInternalServerError)
		}
	}
	panicked = false
	return nil
}

// ended reports whether the request ended without an answer. Fiber sends the
// response only after the handlers, so a user context that ended before is one
// that ended before the response was begun. fasthttp does not tell handlers
// that a client has gone; its own context ends when the server shuts down, and
// the client still gets what a handler writes meanwhile.
func ended(f *fiber.Ctx, before context.Context, failed error) bool {
	if before.Err() != nil {
		return true
	}
	if written(f) {
		return false
	}
	return outcome.Ended(before, f.UserContext()) || outcome.IsContextError(failed) || shutDown(f)
}

// written reports that the response differs from what a client gets if no
// handler writes anything.
func written(f *fiber.Ctx) bool {
	r := f.Response()
	return r.StatusCode() != http.StatusOK || r.IsBodyStream() || len(r.Body()) > 0 || f.Context().Hijacked()
}

// shutDown reports that the server is shutting down. A context that no server
// made, as unit tests use, has no connection and cannot tell.
func shutDown(f *fiber.Ctx) bool {
	return f.Context().Conn() != nil && f.Context().Err() != nil
}
