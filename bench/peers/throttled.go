package peers

import (
	"context"
	"net/http"

	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/memstore"
)

// throttledPeer is told how many keys it may hold, the least recently used going
// first; without a bound its store never forgets any.
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
