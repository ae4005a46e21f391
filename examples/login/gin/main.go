// Command gin serves a limited API and a protected login form with Gin. Log in six times
// with a wrong password: look at the answer on the page, and at the line in the log.
//
//	go run ./examples/login/gin
package main

import (
	"net/http"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	"github.com/floodgate-go/floodgate/examples/login/site"
)

func main() {
	gin.SetMode(gin.ReleaseMode)
	site.Main(func(s *site.Site) site.Server { return site.HTTPServer(routes(s)) })
}

// routes is the whole of what is Gin's own.
func routes(s *site.Site) http.Handler {
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.Use(gin.Recovery())
	r.GET("/api", ginlimit.Middleware(s.API), func(c *gin.Context) { c.String(http.StatusOK, "hello\n") })
	r.POST("/login", ginlimit.Middleware(s.Login), login(s))
	r.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	r.GET("/", func(c *gin.Context) { c.Data(http.StatusOK, "text/html; charset=utf-8", site.Page) })
	return r
}

func login(s *site.Site) gin.HandlerFunc {
	return func(c *gin.Context) {
		// PostForm reads the body only; ShouldBind reads the query too.
		username := c.PostForm("username")
		if !site.PasswordRight(username, c.PostForm("password")) {
			c.String(http.StatusUnauthorized, "wrong username or password\n")
			return
		}
		if cookie := s.DeviceCookie(c.Request.Context(), username); cookie != nil {
			http.SetCookie(c.Writer, cookie)
		}
		c.String(http.StatusOK, "welcome\n")
	}
}
