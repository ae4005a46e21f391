package peers

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	fiber3 "github.com/gofiber/fiber/v3"
	adaptor3 "github.com/gofiber/fiber/v3/middleware/adaptor"
	"github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"
	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/internal/redistest"
)

var sample = Limit{Quota: 5, Window: time.Hour}

// Each peer does what it is measured for: it allows the quota, and no more.
func TestSlotsAreGivenBack(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	for _, p := range Extras {
		if p.Name != Slots {
			continue
		}
		local, end := p.Local(sample)
		for name, allow := range map[string]Allow{"in the process": local, "in Redis": p.Redis(client, sample)} {
			for i := range 4 * sample.Quota {
				if !allow("1") {
					t.Errorf("%s: %d is denied", name, i)
				}
			}
		}
		end()
	}
}

func TestEachPeerAllowsTheQuota(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	for _, p := range All {
		if p.Name == Slots {
			continue // what it takes it gives back
		}
		if p.Local != nil {
			allow, end := p.Local(sample)
			allows(t, p.Name, allow)
			end()
		}
		if p.Synced != nil {
			allow, end := p.Synced(sample)
			allows(t, p.Name, allow)
			end()
		}
		if p.Redis != nil {
			allows(t, p.Name+" in Redis", p.Redis(client, sample))
			if err := client.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if p.GRPC != nil {
			limit := p.GRPC(sample)
			allows(t, p.Name+" in gRPC", func(key string) bool { return callGRPC(limit, "192.0.2."+key)() == nil })
		}
		if p.Connect != nil {
			h := Connect(p.Connect(sample))
			allows(t, p.Name+" in Connect", func(key string) bool {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, ConnectCall("192.0.2."+key))
				return w.Code == http.StatusOK
			})
		}
		for framework, app := range apps(p) {
			allows(t, p.Name+" in "+framework, func(key string) bool {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.RemoteAddr = "192.0.2." + key + ":99"
				w := httptest.NewRecorder()
				app.ServeHTTP(w, r)
				return w.Code == http.StatusOK
			})
		}
	}
}

func allows(t *testing.T, name string, allow Allow) {
	t.Helper()
	// Fiber's test adapter has one address for all: its keys are not apart.
	for _, key := range []string{"1", "2"}[:map[bool]int{true: 1, false: 2}[name == "floodgate in fiber" || name == "floodgate, no headers in fiber" || name == "Fiber's limiter in fiber"]] {
		allowed := 0
		for range 20 {
			if allow(key) {
				allowed++
			}
		}
		if allowed != sample.Quota {
			t.Errorf("%s: key %s: %d allowed, want %d", name, key, allowed, sample.Quota)
		}
	}
}

func apps(p Peer) map[string]http.Handler {
	all := map[string]http.Handler{}
	if p.HTTP != nil {
		all["net/http"] = p.HTTP(sample)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	}
	if p.Gin != nil {
		gin.SetMode(gin.ReleaseMode)
		g := gin.New()
		g.Use(p.Gin(sample))
		g.GET("/", func(*gin.Context) {})
		all["gin"] = g
	}
	if p.Echo != nil {
		e := echo.New()
		e.Use(p.Echo(sample))
		e.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
		all["echo"] = e
	}
	if p.Fiber != nil {
		f := fiber.New()
		f.Use(p.Fiber(sample))
		f.Get("/", func(*fiber.Ctx) error { return nil })
		all["fiber"] = adaptor.FiberApp(f)
	}
	if p.Echo5 != nil {
		e := echo5.New()
		e.Use(p.Echo5(sample))
		e.GET("/", func(c *echo5.Context) error { return c.NoContent(http.StatusOK) })
		all["echo5"] = e
	}
	if p.Fiber3 != nil {
		f := fiber3.New()
		f.Use(p.Fiber3(sample))
		f.Get("/", func(fiber3.Ctx) error { return nil })
		all["fiber3"] = adaptor3.FiberApp(f)
	}
	return all
}
