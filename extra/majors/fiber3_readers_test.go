package majors_test

import (
	"encoding/json"

	"github.com/gofiber/fiber/v3"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers"
)

// fiberNames are the readers of the field username in Fiber v3. What they return is a copy.
var fiberNames = map[string]func(fiber.Ctx) string{
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
	"Bind().Body":           bound((*fiber.Bind).Body, username),
	"Bind().Body, embedded": bound((*fiber.Bind).Body, func(f *readers.Credentials) string { return f.Username }),
	"Bind().Query":          bound((*fiber.Bind).Query, username),
	"Bind().Query and Body": func(c fiber.Ctx) string {
		var query, body readers.Form
		_, _ = c.Bind().Query(&query), c.Bind().Body(&body)
		return copied(readers.First(query.Username, body.Username))
	},
	"Bind().All":  bound((*fiber.Bind).All, username),
	"Bind().Form": bound((*fiber.Bind).Form, username),
	"Bind().JSON": bound((*fiber.Bind).JSON, username),
	"Bind().XML":  bound((*fiber.Bind).XML, username),
	"json.Unmarshal": func(c fiber.Ctx) string {
		var f readers.Form
		_ = json.Unmarshal(c.Body(), &f)
		return f.Username
	},
}

// fiberNested are the readers of the field user[name].
var fiberNested = map[string]func(fiber.Ctx) string{
	"FormValue":    func(c fiber.Ctx) string { return copied(c.FormValue("user[name]")) },
	"Bind().Body":  bound((*fiber.Bind).Body, nestedName),
	"Bind().Query": bound((*fiber.Bind).Query, nestedName),
}

// fiberPath are the readers of the field name, which is in the object user in JSON.
var fiberPath = map[string]func(fiber.Ctx) string{
	"the query before JSON": func(c fiber.Ctx) string {
		return readers.First(copied(c.Query("name")), fiberNested["Bind().Query"](c), fiberNested["Bind().Body"](c))
	},
}

// fiberMail are the readers of the field mail.
var fiberMail = map[string]func(fiber.Ctx) string{
	"FormValue":    func(c fiber.Ctx) string { return copied(c.FormValue("mail")) },
	"Bind().Body":  bound((*fiber.Bind).Body, mail),
	"Bind().Query": bound((*fiber.Bind).Query, mail),
}

// fiberQuery are the readers of the query parameter id.
var fiberQuery = map[string]func(fiber.Ctx) string{
	"Query": func(c fiber.Ctx) string { return copied(c.Query("id")) },
	"Bind().Query": bound((*fiber.Bind).Query, func(q *struct {
		ID string `query:"id"`
	}) string {
		return q.ID
	}),
}

// fiberCookies are the readers of the cookie sid.
var fiberCookies = map[string]func(fiber.Ctx) string{
	"Cookies":       func(c fiber.Ctx) string { return copied(c.Cookies("sid")) },
	"Bind().Cookie": bound((*fiber.Bind).Cookie, func(f *readers.Cookies) string { return f.Session }),
}

// bound is a reader that binds an F, and returns one of its fields.
func bound[F any](bind func(*fiber.Bind, any) error, field func(*F) string) func(fiber.Ctx) string {
	return func(c fiber.Ctx) string {
		f := new(F)
		_ = bind(c.Bind(), f)
		return copied(field(f))
	}
}

func username(f *readers.Form) string     { return f.Username }
func nestedName(f *readers.Nested) string { return f.User.Name }
func mail(f *readers.Mail) string         { return f.Mail }

// copied makes Fiber's string one of its own.
func copied(s string) string { return string([]byte(s)) }

func inFiber(streams bool) readers.Framework[fiber.Ctx] {
	return readers.Framework[fiber.Ctx]{
		Name:    map[bool]string{false: "Fiber v3", true: "Fiber v3 with streams"}[streams],
		ByField: map[string]map[string]func(fiber.Ctx) string{"username": fiberNames, "user[name]": fiberNested, "name": fiberPath, "mail": fiberMail},
		Query:   fiberQuery, Cookies: fiberCookies,
		Serve: func(s *readers.Site, checker core.Checker, read func(fiber.Ctx) string) func([]byte) {
			app := fiber.New(fiber.Config{StreamRequestBody: streams})
			app.Use(fiber3limit.Middleware(checker), func(c fiber.Ctx) error {
				s.Saw(read(c))
				return c.SendStatus(s.Status(c.Method()))
			})
			return readers.OverFastHTTP(app.Handler(), streams)
		},
	}
}
