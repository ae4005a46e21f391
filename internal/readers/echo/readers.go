// Package echoreaders has the readers of Echo: see package readers.
package echoreaders

import (
	"github.com/labstack/echo/v4"

	"github.com/floodgate-go/floodgate/internal/readers"
)

// All are the readers of Echo. Each reads the body once.
var All = map[string]func(echo.Context) string{
	"FormValue":     func(c echo.Context) string { return c.FormValue("username") },
	"PostFormValue": func(c echo.Context) string { return c.Request().PostFormValue("username") },
	"FormParams": func(c echo.Context) string {
		form, _ := c.FormParams()
		return form.Get("username")
	},
	"QueryParam": func(c echo.Context) string { return c.QueryParam("username") },
	"MultipartForm": func(c echo.Context) string {
		form, err := c.MultipartForm()
		if err != nil || len(form.Value["username"]) == 0 {
			return ""
		}
		return form.Value["username"][0]
	},
	"Bind": func(c echo.Context) string {
		var f readers.Form
		_ = c.Bind(&f)
		return f.Username
	},
	"Bind, embedded": func(c echo.Context) string {
		var f readers.Credentials
		_ = c.Bind(&f)
		return f.Username
	},
	"BindBody": func(c echo.Context) string {
		var f readers.Form
		_ = new(echo.DefaultBinder).BindBody(c, &f)
		return f.Username
	},
	"BindQueryParams": func(c echo.Context) string {
		var f readers.Form
		_ = new(echo.DefaultBinder).BindQueryParams(c, &f)
		return f.Username
	},
	"FormFieldBinder": func(c echo.Context) (name string) {
		_ = echo.FormFieldBinder(c).String("username", &name).BindError()
		return name
	},
}
