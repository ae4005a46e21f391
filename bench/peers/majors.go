package peers

import (
	fiber3 "github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/limiter"
	echo5 "github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
)

// The limiters of the newer majors of Echo and Fiber.
var (
	echo5Own = Peer{
		Name: "Echo v5's RateLimiter", Module: "github.com/labstack/echo/v5",
		Echo5: func(l Limit) echo5.MiddlewareFunc {
			return middleware.RateLimiter(middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{Rate: l.perSecond(), Burst: l.Quota, ExpiresIn: l.Window}))
		},
	}
	fiber3Own = Peer{
		Name: "Fiber v3's limiter", Module: "github.com/gofiber/fiber/v3",
		Fiber3: func(l Limit) fiber3.Handler {
			return limiter.New(limiter.Config{Max: l.Quota, Expiration: l.Window, LimiterMiddleware: limiter.SlidingWindow{}})
		},
	}
)
