package peers

import (
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"golang.org/x/time/rate"
)

var echoOwn = Peer{
	Name: "Echo's RateLimiter", Module: "github.com/labstack/echo/v4",
	Local: func(l Limit) (Allow, func()) {
		store := echoStore(l)
		return func(key string) bool {
			ok, err := store.Allow(key)
			return err == nil && ok
		}, nothing
	},
	Echo: func(l Limit) echo.MiddlewareFunc { return middleware.RateLimiter(echoStore(l)) },
}

func echoStore(l Limit) *middleware.RateLimiterMemoryStore {
	return middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{Rate: rate.Limit(l.perSecond()), Burst: l.Quota, ExpiresIn: l.Window})
}
