// Command fiber serves a limited API and a protected login form with Fiber. Log in six times
// with a wrong password: look at the answer on the page, and at the line in the log.
//
//	go run ./examples/login/fiber
package main

import (
	"context"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"

	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/examples/login/site"
)

func main() {
	site.Main(func(s *site.Site) site.Server { return server{routes(s)} })
}

// routes is the whole of what is Fiber's own.
func routes(s *site.Site) *fiber.App {
	app := fiber.New(fiber.Config{
		DisableStartupMessage: true,
		ReadTimeout:           30 * time.Second, // ends a body that trickles in
	})
	app.Use(recover.New())
	app.Get("/api", fiberlimit.Middleware(s.API), func(c *fiber.Ctx) error { return c.SendString("hello\n") })
	app.Post("/login", fiberlimit.Middleware(s.Login), login(s))
	app.Get("/healthz", func(c *fiber.Ctx) error { return c.SendString("ok\n") })
	app.Get("/", func(c *fiber.Ctx) error { return c.Type("html", "utf-8").Send(site.Page) })
	return app
}

func login(s *site.Site) fiber.Handler {
	return func(c *fiber.Ctx) error {
		var form struct {
			Username string `form:"username"`
			Password string `form:"password"`
		}
		// BodyParser reads the body only; c.FormValue prefers the query.
		if err := c.BodyParser(&form); err != nil {
			return fiber.ErrBadRequest
		}
		if !site.PasswordRight(form.Username, form.Password) {
			return fiber.NewError(fiber.StatusUnauthorized, "wrong username or password")
		}
		if cookie := s.DeviceCookie(c.UserContext(), form.Username); cookie != nil {
			c.Response().Header.Add("Set-Cookie", cookie.String())
		}
		return c.SendString("welcome\n")
	}
}

// server makes a Fiber application a site.Server.
type server struct{ *fiber.App }

func (s server) Serve(l net.Listener) error { return s.Listener(l) }

func (s server) Shutdown(ctx context.Context) error { return s.ShutdownWithContext(ctx) }
