package echo5limit_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/floodgate-go/floodgate/adapters/adaptertest"
	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

var get = adaptertest.Get

func ExamplePerIP() {
	app := echo.New()
	app.GET("/api", func(c *echo.Context) error { return c.String(http.StatusOK, "hello") }, echo5limit.PerIP(1, time.Minute))

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
	app := echo.New()
	app.GET("/api", func(c *echo.Context) error { return c.String(http.StatusOK, "hello") }, echo5limit.Middleware(limiter))

	get(app)
	// Output: 200 hello
}

func ExampleOnDenied() {
	closed := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(0)}}}}))
	app := echo.New()
	slowDown := echo5limit.OnDenied(func(c *echo.Context, _ core.Decision) error { return c.String(http.StatusTooManyRequests, "slow down") })
	app.GET("/api", func(*echo.Context) error { return nil }, echo5limit.Middleware(closed, slowDown))

	get(app)
	// Output: 429 slow down
}

func ExampleDecisionFrom() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(5)}}}}))
	app := echo.New()
	app.GET("/api", func(c *echo.Context) error {
		d, _ := echo5limit.DecisionFrom(c)
		return c.String(http.StatusOK, fmt.Sprint(d.Remaining, " left"))
	}, echo5limit.Middleware(limiter, echo5limit.ExposeDecision()))

	get(app)
	// Output: 200 4 left
}

func ExampleExposeDecision() {
	app := echo.New()
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(5)}}}}))
	app.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			err := next(c)
			d, _ := echo5limit.DecisionFrom(c)
			fmt.Println("log:", d.Remaining, "left")
			return err
		}
	}, echo5limit.Middleware(limiter, echo5limit.ExposeDecision()))
	app.GET("/api", func(c *echo.Context) error { return c.String(http.StatusOK, "hello") })

	get(app)
	// Output:
	// log: 4 left
	// 200 hello
}

// A key function reads what the framework knows about the request.
func ExampleContext() {
	byScheme := keyfuncs.Func(func(r core.Request) (string, error) {
		c, ok := echo5limit.Context(r)
		if !ok {
			return "", core.SkipRule
		}
		return c.Scheme(), nil
	})
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "scheme", Key: byScheme, Limits: []core.Limit{core.PerMinute(1)}}}}))
	app := echo.New()
	app.GET("/api", func(c *echo.Context) error { return c.String(http.StatusOK, "hello") }, echo5limit.Middleware(limiter))

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
	app := echo.New()
	app.GET("/api", func(c *echo.Context) error {
		echo5limit.SetCost(c, 500)
		return c.String(http.StatusOK, "five hundred words")
	}, echo5limit.Middleware(words))
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
	app := echo.New()
	app.GET("/api", func(c *echo.Context) error {
		d, err := jobs.Take(c.Request().Context(), 1, core.Hit{Rule: "jobs", Key: c.QueryParam("tenant")})
		if err != nil || !d.Allowed {
			return echo5limit.Deny(c, d)
		}
		return c.String(http.StatusOK, "started")
	})
	get(app)
	get(app)
	// Output:
	// 200 started
	// 429
}
