// Package fiberreaders has the readers of Fiber: see package readers.
package fiberreaders

import (
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"github.com/floodgate-go/floodgate/internal/readers"
)

// ByField are the readers of each field.
var ByField = map[string]map[string]func(*fiber.Ctx) string{"username": All, "user[name]": Nested, "name": Path, "mail": Mail}

// All are the readers of the field username in Fiber. What they return is a copy.
var All = map[string]func(*fiber.Ctx) string{
	"FormValue": func(c *fiber.Ctx) string { return copied(c.FormValue("username")) },
	"Query":     func(c *fiber.Ctx) string { return copied(c.Query("username")) },
	"PostArgs":  func(c *fiber.Ctx) string { return string(c.Request().PostArgs().Peek("username")) },
	"MultipartForm": func(c *fiber.Ctx) string {
		form, err := c.MultipartForm()
		if err != nil || len(form.Value["username"]) == 0 {
			return ""
		}
		return copied(form.Value["username"][0])
	},
	"BodyParser": func(c *fiber.Ctx) string {
		var f readers.Form
		_ = c.BodyParser(&f)
		return copied(f.Username)
	},
	"BodyParser, embedded": func(c *fiber.Ctx) string {
		var f readers.Credentials
		_ = c.BodyParser(&f)
		return copied(f.Username)
	},
	"QueryParser": func(c *fiber.Ctx) string {
		var f readers.Form
		_ = c.QueryParser(&f)
		return copied(f.Username)
	},
	"QueryParser and BodyParser": func(c *fiber.Ctx) string {
		var query, body readers.Form
		_, _ = c.QueryParser(&query), c.BodyParser(&body)
		return copied(readers.First(query.Username, body.Username))
	},
	"json.Unmarshal": func(c *fiber.Ctx) string {
		var f readers.Form
		_ = json.Unmarshal(c.Body(), &f)
		return f.Username
	},
}

// Nested are the readers of the field user[name].
var Nested = map[string]func(*fiber.Ctx) string{
	"FormValue": func(c *fiber.Ctx) string { return copied(c.FormValue("user[name]")) },
	"BodyParser": func(c *fiber.Ctx) string {
		var f readers.Nested
		_ = c.BodyParser(&f)
		return copied(f.User.Name)
	},
	"QueryParser": func(c *fiber.Ctx) string {
		var f readers.Nested
		_ = c.QueryParser(&f)
		return copied(f.User.Name)
	},
}

// Path are the readers of the field name, which is in the object user in JSON.
var Path = map[string]func(*fiber.Ctx) string{
	"the query before JSON": func(c *fiber.Ctx) string {
		return readers.First(copied(c.Query("name")), Nested["QueryParser"](c), Nested["BodyParser"](c))
	},
}

// Mail are the readers of the field mail.
var Mail = map[string]func(*fiber.Ctx) string{
	"FormValue": func(c *fiber.Ctx) string { return copied(c.FormValue("mail")) },
	"BodyParser": func(c *fiber.Ctx) string {
		var f readers.Mail
		_ = c.BodyParser(&f)
		return copied(f.Mail)
	},
	"QueryParser": func(c *fiber.Ctx) string {
		var f readers.Mail
		_ = c.QueryParser(&f)
		return copied(f.Mail)
	},
}

// Query are the readers of the query parameter id.
var Query = map[string]func(*fiber.Ctx) string{
	"Query": func(c *fiber.Ctx) string { return copied(c.Query("id")) },
	"QueryParser": func(c *fiber.Ctx) string {
		var q struct {
			ID string `query:"id"`
		}
		_ = c.QueryParser(&q)
		return copied(q.ID)
	},
}

// Cookies are the readers of the cookie sid.
var Cookies = map[string]func(*fiber.Ctx) string{
	"Cookies": func(c *fiber.Ctx) string { return copied(c.Cookies("sid")) },
	"CookieParser": func(c *fiber.Ctx) string {
		var f readers.Cookies
		_ = c.CookieParser(&f)
		return copied(f.Session)
	},
}

// copied makes Fiber's string one of its own.
func copied(s string) string { return string([]byte(s)) }
