package fiber3limit

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/floodgate-go/floodgate/adapters/internal/fasthttprequest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// A middleware of Use has no route, whether or not Fiber still has the field that tells.
func TestTheRouteOfAMiddlewareOfUse(t *testing.T) {
	field := use
	t.Cleanup(func() { use = field })
	for name, f := range map[string]fasthttprequest.UseField{"the field": field, "no field": {}} {
		use = f
		if f.Known() != (name == "the field") {
			t.Fatalf("%s: known %t", name, f.Known())
		}
		var routes []string
		limit := func() fiber.Handler {
			return Middleware(core.Must(core.New(core.Config{Rules: []core.Rule{{
				Name: "r", Limits: []core.Limit{core.PerHour(100)},
				Key: keyfuncs.Func(func(r core.Request) (string, error) {
					routes = append(routes, r.Route())
					return "", nil
				}),
			}}})))
		}
		app := fiber.New()
		app.Use(limit())
		app.Use("/a", limit())
		app.Group("/a", limit()).Get("/:id", limit(), func(fiber.Ctx) error { return nil })
		resp, err := app.Test(httptest.NewRequest(http.MethodGet, "/a/b", http.NoBody))
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		_ = resp.Body.Close()
		if len(routes) != 4 || routes[0] != "" || routes[1] != "" || routes[2] != "" || routes[3] != "/a/:id" {
			t.Errorf("%s: the routes are %q, want that of the last one only", name, routes)
		}
	}
}
