package peers

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

var redisRate = Peer{
	Name: "redis_rate", Module: "github.com/go-redis/redis_rate/v10",
	Redis: func(c *redis.Client, l Limit) Allow {
		limiter := redis_rate.NewLimiter(c)
		limit := redis_rate.Limit{Rate: l.Quota, Burst: l.Quota, Period: l.Window}
		ctx := context.Background()
		return func(key string) bool {
			r, err := limiter.Allow(ctx, key, limit)
			return err == nil && r.Allowed > 0
		}
	},
}
