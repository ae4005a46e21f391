package peers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"

	ratelimit "github.com/JGLTechnologies/gin-rate-limit"
	"github.com/didip/tollbooth/v7"
	tblimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/httprate"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	ululegin "github.com/ulule/limiter/v3/drivers/middleware/gin"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
	"golang.org/x/time/rate"
)

// timeRate is what many write by hand: a map of limiters under a mutex. It forgets nothing.
var timeRate = Peer{
	Name: "x/time/rate in a map", Module: "golang.org/x/time",
	Local: func(l Limit) (Allow, func()) {
		var mu sync.Mutex
		limiters := map[string]*rate.Limiter{}
		return func(key string) bool {
			mu.Lock()
			limiter := limiters[key]
			if limiter == nil {
				limiter = rate.NewLimiter(rate.Limit(l.perSecond()), l.Quota)
				limiters[key] = limiter
			}
			mu.Unlock()
			return limiter.Allow()
		}, nothing
	},
}

var goLimiter = Peer{
	Name: "go-limiter", Module: "github.com/sethvargo/go-limiter",
	Local: func(l Limit) (Allow, func()) {
		store := must(memorystore.New(&memorystore.Config{Tokens: uint64(l.Quota), Interval: l.Window, SweepInterval: l.Window, SweepMinTTL: l.Window}))
		ctx := context.Background()
		return func(key string) bool {
			_, _, _, ok, err := store.Take(ctx, key)
			return err == nil && ok
		}, func() { _ = store.Close(ctx) }
	},
	HTTP: func(l Limit) func(http.Handler) http.Handler {
		store := must(memorystore.New(&memorystore.Config{Tokens: uint64(l.Quota), Interval: l.Window}))
		return must(httplimit.NewMiddleware(store, httplimit.IPKeyFunc())).Handle
	},
}

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

// throttledPeer has a bound of keys: without one, its store never forgets any.
var throttledPeer = Peer{
	Name: "throttled", Module: "github.com/throttled/throttled/v2",
	Local: func(l Limit) (Allow, func()) {
		return throttledAllow(throttledLimiter(must(memstore.NewCtx(l.keys())), l)), nothing
	},
	Redis: func(c *redis.Client, l Limit) Allow {
		return throttledAllow(throttledLimiter(must(throttledredis.NewCtx(c, "throttled:")), l))
	},
	HTTP: func(l Limit) func(http.Handler) http.Handler {
		h := throttled.HTTPRateLimiterCtx{RateLimiter: throttledLimiter(must(memstore.NewCtx(65536)), l), VaryBy: &throttled.VaryBy{RemoteAddr: true}}
		return h.RateLimit
	},
}

func throttledLimiter(store throttled.GCRAStoreCtx, l Limit) *throttled.GCRARateLimiterCtx {
	return must(throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDuration(l.Quota, l.Window), MaxBurst: l.Quota - 1}))
}

func throttledAllow(limiter *throttled.GCRARateLimiterCtx) Allow {
	ctx := context.Background()
	return func(key string) bool {
		limited, _, err := limiter.RateLimitCtx(ctx, key, 1)
		return err == nil && !limited
	}
}

var tollboothed = Peer{
	Name: "tollbooth", Module: "github.com/didip/tollbooth/v7",
	Local: func(l Limit) (Allow, func()) {
		lmt := tollboothLimiter(l)
		return func(key string) bool { return !lmt.LimitReached(key) }, nothing
	},
	HTTP: func(l Limit) func(http.Handler) http.Handler {
		lmt := tollboothLimiter(l).SetIPLookups([]string{"RemoteAddr"})
		return func(next http.Handler) http.Handler { return tollbooth.LimitHandler(lmt, next) }
	},
}

func tollboothLimiter(l Limit) *tblimiter.Limiter {
	return tollbooth.NewLimiter(l.perSecond(), &tblimiter.ExpirableOptions{DefaultExpirationTTL: l.Window}).SetBurst(l.Quota)
}

var httprated = Peer{
	Name: "httprate", Module: "github.com/go-chi/httprate",
	// The library decides for a response only: it is given one that keeps
	// nothing, and its headers are part of what is measured.
	Local: func(l Limit) (Allow, func()) {
		limiter := httprate.NewRateLimiter(l.Quota, l.Window)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		return func(key string) bool { return !limiter.OnLimit(Discard{http.Header{}}, r, key) }, nothing
	},
	HTTP: func(l Limit) func(http.Handler) http.Handler {
		return httprate.LimitBy(l.Quota, l.Window, httprate.KeyByIP) //nolint:staticcheck // its README's own way where there is no proxy
	},
}

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
