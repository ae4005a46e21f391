package majors_test

import (
	"github.com/labstack/echo/v5"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers"
)

// echoNames are the readers of the field username in Echo. Each reads the body once.
var echoNames = map[string]func(*echo.Context) string{
	"FormValue":     func(c *echo.Context) string { return c.FormValue("username") },
	"PostFormValue": func(c *echo.Context) string { return c.Request().PostFormValue("username") },
	"FormValues": func(c *echo.Context) string {
		form, _ := c.FormValues()
		return form.Get("username")
	},
	"FormValue, generic": func(c *echo.Context) string {
		name, _ := echo.FormValue[string](c, "username")
		return name
	},
	"FormValueOr": func(c *echo.Context) string { return c.FormValueOr("username", "") },
	"QueryParam":  func(c *echo.Context) string { return c.QueryParam("username") },
	"MultipartForm": func(c *echo.Context) string {
		form, err := c.MultipartForm()
		if err != nil || len(form.Value["username"]) == 0 {
			return ""
		}
		return form.Value["username"][0]
	},
	"Bind": func(c *echo.Context) string {
		var f readers.Form
		_ = c.Bind(&f)
		return f.Username
	},
	"Bind, embedded": func(c *echo.Context) string {
		var f readers.Credentials
		_ = c.Bind(&f)
		return f.Username
	},
	"BindBody": func(c *echo.Context) string {
		var f readers.Form
		_ = echo.BindBody(c, &f)
		return f.Username
	},
	"BindQueryParams": func(c *echo.Context) string {
		var f readers.Form
		_ = echo.BindQueryParams(c, &f)
		return f.Username
	},
	"FormFieldBinder": func(c *echo.Context) (name string) {
		_ = echo.FormFieldBinder(c).String("username", &name).BindError()
		return name
	},
}

// echoNested are the readers of the field user[name].
var echoNested = map[string]func(*echo.Context) string{
	"FormValue": func(c *echo.Context) string { return c.FormValue("user[name]") },
	"Bind": func(c *echo.Context) string {
		var f struct {
			Name string `form:"user[name]" query:"user[name]"`
		}
		_ = c.Bind(&f)
		return f.Name
	},
	"Bind, an object": func(c *echo.Context) string {
		var f readers.Nested
		_ = c.Bind(&f)
		return f.User.Name
	},
}

// echoPath are the readers of the field name, which is in the object user in JSON.
var echoPath = map[string]func(*echo.Context) string{
	"the query before JSON": func(c *echo.Context) string {
		return readers.First(c.QueryParam("name"), c.QueryParam("user[name]"), c.QueryParam("user.name"), echoNested["Bind, an object"](c))
	},
}

// echoMail are the readers of the field mail.
var echoMail = map[string]func(*echo.Context) string{
	"FormValue": func(c *echo.Context) string { return c.FormValue("mail") },
	"Bind": func(c *echo.Context) string {
		var f readers.Mail
		_ = c.Bind(&f)
		return f.Mail
	},
}

// echoQuery are the readers of the query parameter id.
var echoQuery = map[string]func(*echo.Context) string{
	"QueryParam": func(c *echo.Context) string { return c.QueryParam("id") },
	"BindQueryParams": func(c *echo.Context) string {
		var q struct {
			ID string `query:"id"`
		}
		_ = echo.BindQueryParams(c, &q)
		return q.ID
	},
}

// echoCookies are the readers of the cookie sid.
var echoCookies = map[string]func(*echo.Context) string{
	"Cookie": func(c *echo.Context) string {
		cookie, err := c.Cookie("sid")
		if err != nil {
			return ""
		}
		return cookie.Value
	},
}

var inEcho = readers.Framework[*echo.Context]{
	Name:    "Echo v5",
	ByField: map[string]map[string]func(*echo.Context) string{"username": echoNames, "user[name]": echoNested, "name": echoPath, "mail": echoMail},
	Query:   echoQuery, Cookies: echoCookies,
	Serve: func(s *readers.Site, checker core.Checker, read func(*echo.Context) string) func([]byte) {
		e := newEcho()
		e.RouteNotFound("/*", func(c *echo.Context) error {
			s.Saw(read(c))
			return c.NoContent(s.Status(c.Request().Method))
		}, echo5limit.Middleware(checker))
		return readers.OverHTTP(e)
	},
}
