package peers

import (
	"github.com/go-chi/chi/v5/middleware"
	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/limiter"
	fiber3 "github.com/gofiber/fiber/v3"
	fiber3limiter "github.com/gofiber/fiber/v3/middleware/limiter"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
	echo5 "github.com/labstack/echo/v5"
	echo5middleware "github.com/labstack/echo/v5/middleware"
	"golang.org/x/time/rate"
)

// chiThrottle limits what runs at once in the process, for all clients together.
var chiThrottle = Peer{Name: "chi's Throttle", Module: "github.com/go-chi/chi/v5", InFlight: middleware.Throttle}

var echoOwn = Peer{
	Name: "Echo's RateLimiter", Module: "github.com/labstack/echo/v4",
	Local: func(l Limit) (Allow, func()) {
		store := echoStore(l)
		return func(key string) bool {
			ok, err := store.Allow(key)
			return err == nil && ok
		}, nothing
	},
	Echo: func(l Limit) echo.MiddlewareFunc { return echomiddleware.RateLimiter(echoStore(l)) },
}

func echoStore(l Limit) *echomiddleware.RateLimiterMemoryStore {
	return echomiddleware.NewRateLimiterMemoryStoreWithConfig(echomiddleware.RateLimiterMemoryStoreConfig{Rate: rate.Limit(l.perSecond()), Burst: l.Quota, ExpiresIn: l.Window})
}

var fiberOwn = Peer{
	Name: "Fiber's limiter", Module: "github.com/gofiber/fiber/v2",
	Fiber: func(l Limit) fiber.Handler {
		return limiter.New(limiter.Config{Max: l.Quota, Expiration: l.Window, LimiterMiddleware: limiter.SlidingWindow{}})
	},
}

// The limiters of the newer majors of Echo and Fiber.
var (
	echo5Own = Peer{
		Name: "Echo v5's RateLimiter", Module: "github.com/labstack/echo/v5",
		Echo5: func(l Limit) echo5.MiddlewareFunc {
			return echo5middleware.RateLimiter(echo5middleware.NewRateLimiterMemoryStoreWithConfig(echo5middleware.RateLimiterMemoryStoreConfig{Rate: l.perSecond(), Burst: l.Quota, ExpiresIn: l.Window}))
		},
	}
	fiber3Own = Peer{
		Name: "Fiber v3's limiter", Module: "github.com/gofiber/fiber/v3",
		Fiber3: func(l Limit) fiber3.Handler {
			return fiber3limiter.New(fiber3limiter.Config{Max: l.Quota, Expiration: l.Window, LimiterMiddleware: fiber3limiter.SlidingWindow{}})
		},
	}
)
