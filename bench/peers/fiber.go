package peers

import (
	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/limiter"
)

var fiberOwn = Peer{
	Name: "Fiber's limiter", Module: "github.com/gofiber/fiber/v2",
	Fiber: func(l Limit) fiber.Handler {
		return limiter.New(limiter.Config{Max: l.Quota, Expiration: l.Window, LimiterMiddleware: limiter.SlidingWindow{}})
	},
}
