// Command echo is the new program for those who come from Echo's RateLimiter.
//
//	go run ./examples/coming-from/echo
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v4"

	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func main() {
	limiter, err := core.New(core.Config{
		Name: "api",
		Rules: []core.Rule{{
			Name:   "ip",
			Key:    keyfuncs.ClientIP(), // behind a proxy: keyfuncs.ClientIP(keyfuncs.Behind("X-Forwarded-For", "10.0.0.5"))
			Limits: []core.Limit{{Quota: 3, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 3}},
		}},
		Hooks: core.HookFuncs{
			ShouldLimitFunc: func(r core.Request) bool { return r.Route() != "/healthz" },
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	e := echo.New()
	e.Use(echolimit.Middleware(limiter))
	e.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	e.GET("/healthz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	for _, path := range []string{"/", "/", "/", "/", "/healthz"} {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(path, w.Code)
	}
}
