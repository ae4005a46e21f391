package fiber3limit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/floodgate-go/floodgate/adapters/adaptertest"
	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func get(app *fiber.App) {
	adaptertest.Show(app.Test(httptest.NewRequest(http.MethodGet, "/api", nil)))
}

func ExamplePerIP() {
	app := fiber.New()
	app.Get("/api", fiber3limit.PerIP(1, time.Minute), func(c fiber.Ctx) error { return c.SendString("hello") })

	get(app)
	get(app)
	// Output:
	// 200 hello
	// 429
}

func ExampleMiddleware() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerSecond(10), core.PerHour(240)}},
	}}))
	app := fiber.New()
	app.Get("/api", fiber3limit.Middleware(limiter), func(c fiber.Ctx) error { return c.SendString("hello") })

	get(app)
	// Output: 200 hello
}

func ExampleOnDenied() {
	closed := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(0)}}}}))
	app := fiber.New()
	slowDown := fiber3limit.OnDenied(func(c fiber.Ctx, _ core.Decision) error {
		return c.Status(fiber.StatusTooManyRequests).SendString("slow down")
	})
	app.Get("/api", fiber3limit.Middleware(closed, slowDown))

	get(app)
	// Output: 429 slow down
}

func ExampleDecisionFrom() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(5)}}}}))
	app := fiber.New()
	app.Get("/api", fiber3limit.Middleware(limiter, fiber3limit.ExposeDecision()), func(c fiber.Ctx) error {
		d, _ := fiber3limit.DecisionFrom(c)
		return c.SendString(fmt.Sprint(d.Remaining, " left"))
	})

	get(app)
	// Output: 200 4 left
}

// A middleware before the limiter reads the decision after the handlers.
func ExampleExposeDecision() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(5)}}}}))
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error {
		err := c.Next()
		d, _ := fiber3limit.DecisionFrom(c)
		fmt.Println("log:", d.Remaining, "left")
		return err
	}, fiber3limit.Middleware(limiter, fiber3limit.ExposeDecision()))
	app.Get("/api", func(c fiber.Ctx) error { return c.SendString("hello") })

	get(app)
	// Output:
	// log: 4 left
	// 200 hello
}

// A key function reads what the framework knows about the request.
func ExampleCtx() {
	byScheme := keyfuncs.Func(func(r core.Request) (string, error) {
		c, ok := fiber3limit.Ctx(r)
		if !ok {
			return "", core.SkipRule
		}
		return strings.Clone(c.Scheme()), nil
	})
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "scheme", Key: byScheme, Limits: []core.Limit{core.PerMinute(1)}}}}))
	app := fiber.New()
	app.Get("/api", fiber3limit.Middleware(limiter), func(c fiber.Ctx) error { return c.SendString("hello") })

	get(app)
	get(app)
	// Output:
	// 200 hello
	// 429
}

func ExampleSetCost() {
	words := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "words", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(1000)},
		Cost: func(core.Request) (int64, error) { return 100, nil }, // a request reserves 100 words
	}}}))
	app := fiber.New()
	app.Get("/api", fiber3limit.Middleware(words), func(c fiber.Ctx) error {
		fiber3limit.SetCost(c, 500)
		return c.SendString("five hundred words")
	})
	get(app)
	get(app)
	get(app)
	// Output:
	// 200 five hundred words
	// 200 five hundred words
	// 429
}

func ExampleDeny() {
	jobs := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "jobs", Limits: []core.Limit{core.PerMinute(1)}}}}))
	app := fiber.New()
	app.Get("/api", func(c fiber.Ctx) error {
		d, err := jobs.Take(c.Context(), 1, core.Hit{Rule: "jobs", Key: c.Query("tenant")})
		if err != nil || !d.Allowed {
			return fiber3limit.Deny(c, d)
		}
		return c.SendString("started")
	})
	get(app)
	get(app)
	// Output:
	// 200 started
	// 429
}
