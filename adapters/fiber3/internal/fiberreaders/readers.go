// Package fiberreaders has the readers of Fiber v3: see package readers.
package fiberreaders

import (
	"encoding/json"

	"github.com/gofiber/fiber/v3"

	"github.com/floodgate-go/floodgate/internal/readers"
)

// ByField are the readers of each field.
var ByField = map[string]map[string]func(fiber.Ctx) string{"username": All, "user[name]": Nested, "name": Path, "mail": Mail}

// All are the readers of the field username in Fiber v3. What they return is a copy.
var All = map[string]func(fiber.Ctx) string{
	"FormValue": func(c fiber.Ctx) string { return copied(c.FormValue("username")) },
	"Query":     func(c fiber.Ctx) string { return copied(c.Query("username")) },
	"PostArgs":  func(c fiber.Ctx) string { return string(c.Request().PostArgs().Peek("username")) },
	"MultipartForm": func(c fiber.Ctx) string {
		form, err := c.MultipartForm()
		if err != nil || len(form.Value["username"]) == 0 {
			return ""
		}
		return copied(form.Value["username"][0])
	},
	"Bind().Body": func(c fiber.Ctx) string {
		var f readers.Form
		_ = c.Bind().Body(&f)
		return copied(f.Username)
	},
	"Bind().Body, embedded": func(c fiber.Ctx) string {
		var f readers.Credentials
		_ = c.Bind().Body(&f)
		return copied(f.Username)
	},
	"Bind().Query": func(c fiber.Ctx) string {
		var f readers.Form
		_ = c.Bind().Query(&f)
		return copied(f.Username)
	},
	"Bind().Query and Body": func(c fiber.Ctx) string {
		var query, body readers.Form
		_, _ = c.Bind().Query(&query), c.Bind().Body(&body)
		return copied(readers.First(query.Username, body.Username))
	},
	"Bind().All":  bound(func(b *fiber.Bind, f *readers.Form) { _ = b.All(f) }),
	"Bind().Form": bound(func(b *fiber.Bind, f *readers.Form) { _ = b.Form(f) }),
	"Bind().JSON": bound(func(b *fiber.Bind, f *readers.Form) { _ = b.JSON(f) }),
	"Bind().XML":  bound(func(b *fiber.Bind, f *readers.Form) { _ = b.XML(f) }),
	"json.Unmarshal": func(c fiber.Ctx) string {
		var f readers.Form
		_ = json.Unmarshal(c.Body(), &f)
		return f.Username
	},
}

// Nested are the readers of the field user[name].
var Nested = map[string]func(fiber.Ctx) string{
	"FormValue": func(c fiber.Ctx) string { return copied(c.FormValue("user[name]")) },
	"Bind().Body": func(c fiber.Ctx) string {
		var f readers.Nested
		_ = c.Bind().Body(&f)
		return copied(f.User.Name)
	},
	"Bind().Query": func(c fiber.Ctx) string {
		var f readers.Nested
		_ = c.Bind().Query(&f)
		return copied(f.User.Name)
	},
}

// Path are the readers of the field name, which is in the object user in JSON.
var Path = map[string]func(fiber.Ctx) string{
	"the query before JSON": func(c fiber.Ctx) string {
		return readers.First(copied(c.Query("name")), Nested["Bind().Query"](c), Nested["Bind().Body"](c))
	},
}

// Mail are the readers of the field mail.
var Mail = map[string]func(fiber.Ctx) string{
	"FormValue": func(c fiber.Ctx) string { return copied(c.FormValue("mail")) },
	"Bind().Body": func(c fiber.Ctx) string {
		var f readers.Mail
		_ = c.Bind().Body(&f)
		return copied(f.Mail)
	},
	"Bind().Query": func(c fiber.Ctx) string {
		var f readers.Mail
		_ = c.Bind().Query(&f)
		return copied(f.Mail)
	},
}

// Query are the readers of the query parameter id.
var Query = map[string]func(fiber.Ctx) string{
	"Query": func(c fiber.Ctx) string { return copied(c.Query("id")) },
	"Bind().Query": func(c fiber.Ctx) string {
		var q struct {
			ID string `query:"id"`
		}
		_ = c.Bind().Query(&q)
		return copied(q.ID)
	},
}

// Cookies are the readers of the cookie sid.
var Cookies = map[string]func(fiber.Ctx) string{
	"Cookies": func(c fiber.Ctx) string { return copied(c.Cookies("sid")) },
	"Bind().Cookie": func(c fiber.Ctx) string {
		var f readers.Cookies
		_ = c.Bind().Cookie(&f)
		return copied(f.Session)
	},
}

// bound is a reader that binds a Form.
func bound(bind func(*fiber.Bind, *readers.Form)) func(fiber.Ctx) string {
	return func(c fiber.Ctx) string {
		var f readers.Form
		bind(c.Bind(), &f)
		return copied(f.Username)
	}
}

// copied makes Fiber's string one of its own.
func copied(s string) string { return string([]byte(s)) }
