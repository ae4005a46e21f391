package peers

import (
	ratelimit "github.com/JGLTechnologies/gin-rate-limit"
	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
)

var ginRateLimit = Peer{
	Name: "gin-rate-limit", Module: "github.com/JGLTechnologies/gin-rate-limit",
	Local: func(l Limit) (Allow, func()) {
		return ginAllow(ratelimit.InMemoryStore(&ratelimit.InMemoryOptions{Rate: l.Window, Limit: uint(l.Quota)})), nothing
	},
	Redis: func(c *redis.Client, l Limit) Allow {
		return ginAllow(ratelimit.RedisStore(&ratelimit.RedisOptions{RedisClient: c, Rate: l.Window, Limit: uint(l.Quota)}))
	},
	Gin: func(l Limit) gin.HandlerFunc {
		return ratelimit.RateLimiter(ratelimit.InMemoryStore(&ratelimit.InMemoryOptions{Rate: l.Window, Limit: uint(l.Quota)}), &ratelimit.Options{
			KeyFunc: func(c *gin.Context) string { return c.ClientIP() },
		})
	},
}

func ginAllow(store ratelimit.Store) Allow {
	return func(key string) bool { return !store.Limit(key, nil).RateLimited }
}
