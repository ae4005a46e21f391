package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/labstack/echo/v4"

	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/policy"
)

// applications are a whole application in each framework, under one middleware.
var applications = map[string]func(*policy.Set) http.Handler{
	"net/http": func(s *policy.Set) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("/items/{id}", func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.PathValue("id")) })
		return httplimit.Middleware(s)(mux)
	},
	"gin": func(s *policy.Set) http.Handler {
		gin.SetMode(gin.ReleaseMode)
		g := gin.New()
		g.Use(ginlimit.Middleware(s))
		g.Any("/items/:id", func(c *gin.Context) { c.String(200, "%s", c.Param("id")) })
		return g
	},
	"echo": func(s *policy.Set) http.Handler {
		e := echo.New()
		e.Use(echolimit.Middleware(s))
		e.Any("/items/:id", func(c echo.Context) error { return c.String(200, c.Param("id")) })
		return e
	},
	"fiber": func(s *policy.Set) http.Handler {
		f := fiber.New()
		f.Use(fiberlimit.Middleware(s))
		f.All("/items/:id", func(c *fiber.Ctx) error { return c.SendString(c.Params("id")) })
		return adaptor.FiberApp(f)
	},
}

// One file does the same in every framework.
func TestAFileIsForAWholeApplicationInEachFramework(t *testing.T) {
	const file = `
policies:
  - name: writes
    match: {methods: [POST], paths: [/items/*]}
    key: header["x-user"]
    missing: reject
    limits: 2/h fixed_window
    headers: draft-10
  - name: all
    limits: 5/h # of which the bad request is one
    match: {paths: [/**]}
    on-denied: {status: 503, body: full, headers: {X-Full: "yes"}}
`
	for name, application := range applications {
		t.Run(name, func(t *testing.T) {
			set, err := policy.Parse("limits.yaml", []byte(file))
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close() //nolint:errcheck // the test is over
			app := application(set)
			send := func(method, path, user string) *httptest.ResponseRecorder {
				r := httptest.NewRequest(method, path, nil)
				if user != "" {
					r.Header.Set("X-User", user)
				}
				w := httptest.NewRecorder()
				app.ServeHTTP(w, r)
				return w
			}
			for i, c := range []struct {
				method, user string
				status       int
				body, header string
			}{
				{"POST", "", 400, "", ""},
				{"POST", "ann", 200, "7", `"writes";r=1;t=3600`},
				{"POST", "ann", 200, "7", `"writes";r=0;t=3600`},
				{"POST", "ann", 429, "", `"writes";r=0;t=3600`},
				{"POST", "bob", 200, "7", `"writes";r=1;t=3600`},
				{"GET", "", 200, "7", ""},
				{"GET", "", 503, "full", ""},
			} {
				w := send(c.method, "/items/7", c.user)
				if w.Code != c.status || c.body != "" && w.Body.String() != c.body || w.Header().Get("Ratelimit") != c.header && c.header != "" {
					t.Errorf("request %d: %d %q %v", i, w.Code, w.Body, w.Header())
				}
			}
			if w := send("POST", "/items/7", "eve"); w.Code != 503 || w.Header().Get("X-Full") != "yes" {
				t.Errorf("the last: %d %v", w.Code, w.Header())
			}
		})
	}
}
