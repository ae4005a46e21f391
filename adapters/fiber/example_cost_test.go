package fiberlimit_test

import (
	"github.com/gofiber/fiber/v2"

	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// words is a limiter of 1,000 words an hour. A request reserves 100 of them.
func words() *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "words", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(1000)},
		Cost: func(core.Request) (int64, error) { return 100, nil },
	}}}))
}

// jobs is a limiter of one job a minute, for programs that decide in the handler.
func jobs() *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "jobs", Limits: []core.Limit{core.PerMinute(1)}}}}))
}

func ExampleSetCost() {
	app := fiber.New()
	app.Get("/api", fiberlimit.Middleware(words()), func(c *fiber.Ctx) error {
		fiberlimit.SetCost(c, 500)
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
	app, limiter := fiber.New(), jobs()
	app.Get("/api", func(c *fiber.Ctx) error {
		d, err := limiter.Take(c.UserContext(), 1, core.Hit{Rule: "jobs", Key: c.Query("tenant")})
		if err != nil || !d.Allowed {
			return fiberlimit.Deny(c, d)
		}
		return c.SendString("started")
	})
	get(app)
	get(app)
	// Output:
	// 200 started
	// 429
}
