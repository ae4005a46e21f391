package fiber3limit_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
)

// If the application's ErrorHandler returns an error, the client gets 500, as without the
// limiter, and so does the outcome.
func TestAFailingErrorHandlerCountsAs500(t *testing.T) {
	wrong := errors.New("wrong password")
	for name, row := range map[string]struct {
		answer func(fiber.Ctx, error) error
		status int
		body   string
	}{
		"without a word":        {func(fiber.Ctx, error) error { return errors.New("no template") }, 500, "Internal Server Error"},
		"with its own error":    {func(_ fiber.Ctx, err error) error { return err }, 500, "Internal Server Error"},
		"after a success":       {func(c fiber.Ctx, err error) error { _ = c.SendString("welcome"); return err }, 500, "welcome"},
		"and one that does not": {func(c fiber.Ctx, _ error) error { return c.Status(401).SendString("no") }, 401, "no"},
	} {
		for _, limited := range []bool{true, false} {
			l, next := outcomesOf(t)
			app := fiber.New(fiber.Config{ErrorHandler: row.answer})
			if limited {
				app.Use(fiber3limit.Middleware(l))
			}
			app.Get("/", func(fiber.Ctx) error { return wrong })
			resp, err := app.Test(httptest.NewRequest(http.MethodGet, "/", http.NoBody), untimed)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != row.status || string(body) != row.body {
				t.Errorf("%s: limited %v: status %d, body %q, want %d, %q", name, limited, resp.StatusCode, body, row.status, row.body)
			}
			if !limited {
				continue
			}
			if o := next(); o.Status != row.status || o.Panicked || o.Canceled {
				t.Errorf("%s: the limiter learnt %+v", name, o)
			}
		}
	}
}

// The panic keeps its value.
func TestAPanicCountsAsAFailureAndIsNotRecovered(t *testing.T) {
	l, next := outcomesOf(t)
	app := fiber.New()
	app.Get("/", fiber3limit.Middleware(l), func(c fiber.Ctx) error {
		_ = c.SendString("welcome")
		panic("the handler's")
	})
	serve := app.Handler()
	for range 2 {
		func() {
			defer func() {
				if v := recover(); v != "the handler's" {
					t.Errorf("recovered %v", v)
				}
			}()
			var ctx fasthttp.RequestCtx
			ctx.Request.SetRequestURI("/")
			serve(&ctx)
		}()
		if o := next(); !o.Panicked || o.Status != http.StatusInternalServerError || o.Canceled {
			t.Errorf("the limiter learnt %+v", o)
		}
	}
}
