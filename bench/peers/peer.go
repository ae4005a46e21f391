// Package peers has rate limiting libraries behind one interface each, every
// one configured as its README says, so that they can be measured beside each
// other.
package peers

import (
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
)

// Allow decides on one request of a key.
type Allow func(key string) bool

// Limit is what a peer is to enforce.
type Limit struct {
	Quota  int
	Window time.Duration
	Keys   int // that are going to be held at a time; 0: up to a million
}

// keys is for peers that want to be told how many keys they may hold.
func (l Limit) keys() int { return max(l.Keys, 1_000_000) }

// perSecond is the limit as a rate.
func (l Limit) perSecond() float64 { return float64(l.Quota) / l.Window.Seconds() }

// Peer is a library. What it cannot do is nil.
type Peer struct {
	Name   string
	Module string // whose version is reported
	// Local counts in the process. Where the library can be told how long an
	// idle key is kept, it is told the window.
	Local func(Limit) (a Allow, end func())
	// Synced counts in the process and exchanges the counts with others meanwhile.
	Synced func(Limit) (a Allow, end func())
	// Redis counts in Redis.
	Redis func(*redis.Client, Limit) Allow
	// The middleware of the frameworks, by the client's address.
	HTTP  func(Limit) func(http.Handler) http.Handler
	Gin   func(Limit) gin.HandlerFunc
	Echo  func(Limit) echo.MiddlewareFunc
	Fiber func(Limit) fiber.Handler
	// InFlight is the middleware of net/http for what runs at once: for each client's
	// address, or for all clients if the library can do no other.
	InFlight func(n int) func(http.Handler) http.Handler
	// GRPC is the interceptor of unary calls.
	GRPC func(Limit) grpc.UnaryServerInterceptor
	// Connect is the interceptor of handlers.
	Connect func(Limit) connect.Interceptor
	// The newer majors.
	Echo5  func(Limit) echo5.MiddlewareFunc
	Fiber3 func(Limit) fiber3.Handler
}

// All are the peers, ours first.
var All = append([]Peer{floodgate, floodgateSynced, floodgatePlain, floodgateSix, ulule, httprated, throttledPeer, goLimiter, tollboothed, timeRate, echoOwn, echo5Own, fiberOwn, fiber3Own, ginRateLimit, redisRate, chiThrottle}, Extras...)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func nothing() {}

// Discard is a response that goes nowhere.
type Discard struct{ H http.Header }

// Header implements [http.ResponseWriter].
func (d Discard) Header() http.Header { return d.H }

// Write implements [http.ResponseWriter].
func (d Discard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements [http.ResponseWriter].
func (d Discard) WriteHeader(int) {}
