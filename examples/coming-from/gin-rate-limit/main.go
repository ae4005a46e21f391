// Command gin-rate-limit is the new program for those who come from gin-rate-limit.
//
//	go run ./examples/coming-from/gin-rate-limit
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func main() {
	limiter, err := core.New(core.Config{
		Name: "api",
		Rules: []core.Rule{{
			Name:   "client",
			Key:    keyfuncs.Join(keyfuncs.ClientIP(keyfuncs.Behind("X-Forwarded-For", "10.0.0.5")), keyfuncs.Route()),
			Limits: []core.Limit{core.PerMinute(3)},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	gin.SetMode(gin.ReleaseMode)
	app := gin.New()
	app.GET("/api", ginlimit.Middleware(limiter), func(c *gin.Context) { c.Status(http.StatusOK) })
	for _, client := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"} {
		r := httptest.NewRequest(http.MethodGet, "/api", nil)
		r.RemoteAddr = "10.0.0.5:4000"
		r.Header.Set("X-Forwarded-For", client)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, r)
		fmt.Println(client, w.Code)
	}
}
