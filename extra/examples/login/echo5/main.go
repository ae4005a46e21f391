// Command echo5 serves a limited API and a protected login form with Echo v5.
//
//	cd extra && go run ./examples/login/echo5
package main

import (
	"net/http"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/examples/login/site"
)

func main() {
	site.Main(func(s *site.Site) site.Server { return site.HTTPServer(routes(s)) })
}

// routes is the whole of what is Echo's own.
func routes(s *site.Site) http.Handler {
	e := echo.New()
	e.Use(middleware.Recover())
	e.GET("/api", func(c *echo.Context) error { return c.String(http.StatusOK, "hello\n") }, echo5limit.Middleware(s.API))
	e.POST("/login", login(s), echo5limit.Middleware(s.Login))
	e.GET("/healthz", func(c *echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.GET("/", func(c *echo.Context) error { return c.HTMLBlob(http.StatusOK, site.Page) })
	return e
}

func login(s *site.Site) echo.HandlerFunc {
	return func(c *echo.Context) error {
		form := c.Request() // its PostFormValue reads the body only; c.FormValue and c.FormValues read the query too
		username := form.PostFormValue("username")
		if !site.PasswordRight(username, form.PostFormValue("password")) {
			return echo.NewHTTPError(http.StatusUnauthorized, "wrong username or password")
		}
		if cookie := s.DeviceCookie(c.Request().Context(), username); cookie != nil {
			c.SetCookie(cookie)
		}
		return c.String(http.StatusOK, "welcome\n")
	}
}
