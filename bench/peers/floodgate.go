package peers

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	fiber3 "github.com/gofiber/fiber/v3"
	"github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/keyfuncs"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

const ourModule = "github.com/floodgate-go/floodgate"

var floodgate = Peer{
	Name: "floodgate", Module: ourModule,
	Local: func(l Limit) (Allow, func()) {
		store := must(core.NewMemory(core.MemoryConfig{MaxKeys: l.keys()}))
		return take(ours(l, core.HeadersDraft10, store)), func() { _ = store.Close() }
	},
	Redis: func(c *redis.Client, l Limit) Allow {
		return take(ours(l, core.HeadersDraft10, redisstore.New(c, redisstore.Timeout(10*time.Second), redisstore.AnotherInstance())))
	},
	HTTP: func(l Limit) func(http.Handler) http.Handler {
		return httplimit.Middleware(ours(l, core.HeadersDraft10, nil))
	},
	Gin:   func(l Limit) gin.HandlerFunc { return ginlimit.Middleware(ours(l, core.HeadersDraft10, nil)) },
	Echo:  func(l Limit) echo.MiddlewareFunc { return echolimit.Middleware(ours(l, core.HeadersDraft10, nil)) },
	Fiber: func(l Limit) fiber.Handler { return fiberlimit.Middleware(ours(l, core.HeadersDraft10, nil)) },
	GRPC: func(l Limit) grpc.UnaryServerInterceptor {
		return grpclimit.UnaryServerInterceptor(ours(l, core.HeadersDraft10, nil))
	},
	Connect: func(l Limit) connect.Interceptor { return connectlimit.Interceptor(ours(l, core.HeadersDraft10, nil)) },
	Echo5: func(l Limit) echo5.MiddlewareFunc {
		return echo5limit.Middleware(ours(l, core.HeadersDraft10, nil))
	},
	Fiber3: func(l Limit) fiber3.Handler { return fiber3limit.Middleware(ours(l, core.HeadersDraft10, nil)) },
	InFlight: func(n int) func(http.Handler) http.Handler {
		return httplimit.Middleware(must(inflight.New(inflight.Config{Name: "bench", Max: int64(n), Key: keyfuncs.ClientIP()})))
	},
}

// Plain is the peer without response headers.
const Plain = "floodgate, no headers"

// floodgatePlain is ours without response headers, to be seen beside the peers
// that write none.
var floodgatePlain = Peer{
	Name: Plain, Module: ourModule,
	HTTP: func(l Limit) func(http.Handler) http.Handler {
		return httplimit.Middleware(ours(l, core.HeadersOff, nil))
	},
	Gin:   func(l Limit) gin.HandlerFunc { return ginlimit.Middleware(ours(l, core.HeadersOff, nil)) },
	Echo:  func(l Limit) echo.MiddlewareFunc { return echolimit.Middleware(ours(l, core.HeadersOff, nil)) },
	Fiber: func(l Limit) fiber.Handler { return fiberlimit.Middleware(ours(l, core.HeadersOff, nil)) },
	GRPC: func(l Limit) grpc.UnaryServerInterceptor {
		return grpclimit.UnaryServerInterceptor(ours(l, core.HeadersOff, nil))
	},
	Connect: func(l Limit) connect.Interceptor { return connectlimit.Interceptor(ours(l, core.HeadersOff, nil)) },
	Echo5:   func(l Limit) echo5.MiddlewareFunc { return echo5limit.Middleware(ours(l, core.HeadersOff, nil)) },
	Fiber3:  func(l Limit) fiber3.Handler { return fiber3limit.Middleware(ours(l, core.HeadersOff, nil)) },
}

// Six is the peer with three limits on each of two keys.
const Six = "floodgate, 3 limits × 2 keys"

// floodgateSix is ours with three limits on each of two keys, to be seen beside
// what decides on one.
var floodgateSix = Peer{
	Name: Six, Module: ourModule,
	Redis: func(c *redis.Client, l Limit) Allow {
		var limits []core.Limit
		for n := range 3 {
			limits = append(limits, core.Limit{Quota: int64(l.Quota), Window: l.Window << n})
		}
		limiter := must(core.New(core.Config{
			Name: "bench",
			Rules: []core.Rule{
				{Name: "ip", Key: keyfuncs.ClientIP(), Limits: limits},
				{Name: "user", Key: keyfuncs.Static("user"), Limits: limits},
			},
			Store: redisstore.New(c, redisstore.Timeout(10*time.Second), redisstore.AnotherInstance()),
		}))
		ctx := context.Background()
		return func(key string) bool {
			d, err := limiter.Take(ctx, 1, core.Hit{Rule: "ip", Key: key}, core.Hit{Rule: "user", Key: key})
			return err == nil && d.Allowed
		}
	},
}

func ours(l Limit, h core.Headers, store core.Store) *core.Limiter {
	return must(core.New(core.Config{
		Name:  "bench",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{{Quota: int64(l.Quota), Window: l.Window}}}},
		Store: store, Headers: h,
	}))
}

func take(limiter *core.Limiter) Allow {
	ctx := context.Background()
	return func(key string) bool {
		d, err := limiter.Take(ctx, 1, core.Hit{Rule: "ip", Key: key})
		return err == nil && d.Allowed
	}
}
