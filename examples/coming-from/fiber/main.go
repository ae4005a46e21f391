// Command fiber is the new program for those who come from Fiber's limiter.
//
//	go run ./examples/coming-from/fiber
package main

import (
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/gofiber/fiber/v2"

	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func main() {
	limiter, err := core.New(core.Config{
		Name: "login",
		Rules: []core.Rule{{
			Name:   "ip",
			Key:    keyfuncs.ClientIP(),
			Limits: []core.Limit{{Quota: 3, Window: time.Minute, Algorithm: core.FixedWindow}},
			Counts: func(_ core.Request, o core.Outcome) bool { return o.Canceled || o.Status >= 400 }, // count failures only
		}},
		Hooks: core.HookFuncs{
			ShouldLimitFunc: func(r core.Request) bool { return r.Path() != "/healthz" },
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	app := fiber.New()
	app.Use(fiberlimit.Middleware(limiter))
	app.Get("/healthz", func(c *fiber.Ctx) error { return c.SendStatus(fiber.StatusOK) })
	app.Get("/login/:password", func(c *fiber.Ctx) error {
		if c.Params("password") != "right" {
			return c.SendStatus(fiber.StatusUnauthorized)
		}
		return c.SendStatus(fiber.StatusOK)
	})
	for _, path := range []string{"/login/right", "/login/a", "/login/b", "/login/right", "/login/c", "/login/d", "/healthz"} {
		response, err := app.Test(httptest.NewRequest(fiber.MethodGet, path, nil))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(path, response.StatusCode)
	}
}
