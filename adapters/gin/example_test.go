package ginlimit_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/floodgate-go/floodgate/adapters/adaptertest"
	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

var get = adaptertest.Get

func ExamplePerIP() {
	app := gin.New()
	app.GET("/api", ginlimit.PerIP(1, time.Minute), func(c *gin.Context) { c.String(http.StatusOK, "hello") })

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
	app := gin.New()
	app.GET("/api", ginlimit.Middleware(limiter), func(c *gin.Context) { c.String(http.StatusOK, "hello") })

	get(app)
	// Output: 200 hello
}

func ExampleOnDenied() {
	closed := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(0)}}}}))
	app := gin.New()
	slowDown := ginlimit.OnDenied(func(c *gin.Context, _ core.Decision) { c.String(http.StatusTooManyRequests, "slow down") })
	app.GET("/api", ginlimit.Middleware(closed, slowDown))

	get(app)
	// Output: 429 slow down
}

func ExampleDecisionFrom() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(5)}}}}))
	app := gin.New()
	app.GET("/api", ginlimit.Middleware(limiter, ginlimit.ExposeDecision()), func(c *gin.Context) {
		d, _ := ginlimit.DecisionFrom(c)
		c.String(http.StatusOK, "%d left", d.Remaining)
	})

	get(app)
	// Output: 200 4 left
}

func ExampleExposeDecision() {
	app := gin.New()
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(5)}}}}))
	app.Use(func(c *gin.Context) {
		c.Next()
		d, _ := ginlimit.DecisionFrom(c)
		fmt.Println("log:", d.Remaining, "left")
	}, ginlimit.Middleware(limiter, ginlimit.ExposeDecision()))
	app.GET("/api", func(c *gin.Context) { c.String(http.StatusOK, "hello") })

	get(app)
	// Output:
	// log: 4 left
	// 200 hello
}

// A key function reads what the framework knows about the request.
func ExampleContext() {
	byHandler := keyfuncs.Func(func(r core.Request) (string, error) {
		c, ok := ginlimit.Context(r)
		if !ok {
			return "", core.SkipRule
		}
		return c.HandlerName(), nil
	})
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "handler", Key: byHandler, Limits: []core.Limit{core.PerMinute(1)}}}}))
	app := gin.New()
	app.GET("/api", ginlimit.Middleware(limiter), func(c *gin.Context) { c.String(http.StatusOK, "hello") })

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
	app := gin.New()
	app.GET("/api", ginlimit.Middleware(words), func(c *gin.Context) {
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
	jobs := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "jobs", Limits: []core.Limit{core.PerMinute(1)}}}}))
	app := gin.New()
	app.GET("/api", func(c *gin.Context) {
		d, err := jobs.Take(c, 1, core.Hit{Rule: "jobs", Key: c.Query("tenant")})
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
