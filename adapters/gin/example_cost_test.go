package ginlimit_test

import (
	"net/http"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
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
	app := gin.New()
	app.GET("/api", ginlimit.Middleware(words()), func(c *gin.Context) {
		ginlimit.SetCost(c, 500)
		c.String(http.StatusOK, "five hundred words")
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
	app, limiter := gin.New(), jobs()
	app.GET("/api", func(c *gin.Context) {
		d, err := limiter.Take(c, 1, core.Hit{Rule: "jobs", Key: c.Query("tenant")})
		if err != nil || !d.Allowed {
			ginlimit.Deny(c, d)
			return
		}
		c.String(http.StatusOK, "started")
	})
	get(app)
	get(app)
	// Output:
	// 200 started
	// 429
}
