package peers

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	ululegin "github.com/ulule/limiter/v3/drivers/middleware/gin"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

var ulule = Peer{
	Name: "ulule/limiter", Module: "github.com/ulule/limiter/v3",
	Local: func(l Limit) (Allow, func()) {
		store := memory.NewStoreWithOptions(limiter.StoreOptions{Prefix: "limiter", CleanUpInterval: l.Window})
		return ululeAllow(limiter.New(store, ululeRate(l))), nothing
	},
	Redis: func(c *redis.Client, l Limit) Allow {
		return ululeAllow(limiter.New(must(ululeredis.NewStore(c)), ululeRate(l)))
	},
	HTTP: func(l Limit) func(http.Handler) http.Handler {
		return stdlib.NewMiddleware(limiter.New(memory.NewStore(), ululeRate(l))).Handler
	},
	Gin: func(l Limit) gin.HandlerFunc {
		return ululegin.NewMiddleware(limiter.New(memory.NewStore(), ululeRate(l)))
	},
}

func ululeRate(l Limit) limiter.Rate { return limiter.Rate{Period: l.Window, Limit: int64(l.Quota)} }

func ululeAllow(l *limiter.Limiter) Allow {
	ctx := context.Background()
	return func(key string) bool {
		c, err := l.Get(ctx, key)
		return err == nil && !c.Reached
	}
}
