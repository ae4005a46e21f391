package echolimit_test

import (
	"net/http"

	"github.com/labstack/echo/v4"

	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
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
	app := echo.New()
	app.GET("/api", func(c echo.Context) error {
		echolimit.SetCost(c, 500)
		return c.String(http.StatusOK, "five hundred words")
	}, echolimit.Middleware(words()))
	get(app)
	get(app)
	get(app)
	// Output:
	// 200 five hundred words
	// 200 five hundred words
	// 429
}

func ExampleDeny() {
	app, limiter := echo.New(), jobs()
	app.GET("/api", func(c echo.Context) error {
		d, err := limiter.Take(c.Request().Context(), 1, core.Hit{Rule: "jobs", Key: c.QueryParam("tenant")})
		if err != nil || !d.Allowed {
			return echolimit.Deny(c, d)
		}
		return c.String(http.StatusOK, "started")
	})
	get(app)
	get(app)
	// Output:
	// 200 started
	// 429
}
