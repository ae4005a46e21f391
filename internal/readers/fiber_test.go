package readers_test

import (
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers"
)

// fiberNames are the readers of the field username in Fiber. What they return is a copy.
var fiberNames = map[string]func(*fiber.Ctx) string{
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
	"BodyParser":           parsed((*fiber.Ctx).BodyParser, username),
	"BodyParser, embedded": parsed((*fiber.Ctx).BodyParser, func(f *readers.Credentials) string { return f.Username }),
	"QueryParser":          parsed((*fiber.Ctx).QueryParser, username),
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

// fiberNested are the readers of the field user[name].
var fiberNested = map[string]func(*fiber.Ctx) string{
	"FormValue":   func(c *fiber.Ctx) string { return copied(c.FormValue("user[name]")) },
	"BodyParser":  parsed((*fiber.Ctx).BodyParser, nestedName),
	"QueryParser": parsed((*fiber.Ctx).QueryParser, nestedName),
}

// fiberPath are the readers of the field name, which is in the object user in JSON.
var fiberPath = map[string]func(*fiber.Ctx) string{
	"the query before JSON": func(c *fiber.Ctx) string {
		return readers.First(copied(c.Query("name")), fiberNested["QueryParser"](c), fiberNested["BodyParser"](c))
	},
}

// fiberMail are the readers of the field mail.
var fiberMail = map[string]func(*fiber.Ctx) string{
	"FormValue":   func(c *fiber.Ctx) string { return copied(c.FormValue("mail")) },
	"BodyParser":  parsed((*fiber.Ctx).BodyParser, mail),
	"QueryParser": parsed((*fiber.Ctx).QueryParser, mail),
}

// fiberQuery are the readers of the query parameter id.
var fiberQuery = map[string]func(*fiber.Ctx) string{
	"Query": func(c *fiber.Ctx) string { return copied(c.Query("id")) },
	"QueryParser": parsed((*fiber.Ctx).QueryParser, func(q *struct {
		ID string `query:"id"`
	}) string {
		return q.ID
	}),
}

// fiberCookies are the readers of the cookie sid.
var fiberCookies = map[string]func(*fiber.Ctx) string{
	"Cookies":      func(c *fiber.Ctx) string { return copied(c.Cookies("sid")) },
	"CookieParser": parsed((*fiber.Ctx).CookieParser, func(f *readers.Cookies) string { return f.Session }),
}

// parsed is a reader that parses into an F, and returns one of its fields.
func parsed[F any](bind func(*fiber.Ctx, any) error, field func(*F) string) func(*fiber.Ctx) string {
	return func(c *fiber.Ctx) string {
		f := new(F)
		_ = bind(c, f)
		return copied(field(f))
	}
}

func username(f *readers.Form) string     { return f.Username }
func nestedName(f *readers.Nested) string { return f.User.Name }
func mail(f *readers.Mail) string         { return f.Mail }

// copied makes Fiber's string one of its own.
func copied(s string) string { return string([]byte(s)) }

func inFiber(streams bool) readers.Framework[*fiber.Ctx] {
	return readers.Framework[*fiber.Ctx]{
		Name:    map[bool]string{false: "Fiber", true: "Fiber with streams"}[streams],
		ByField: map[string]map[string]func(*fiber.Ctx) string{"username": fiberNames, "user[name]": fiberNested, "name": fiberPath, "mail": fiberMail},
		Query:   fiberQuery, Cookies: fiberCookies,
		Serve: func(s *readers.Site, checker core.Checker, read func(*fiber.Ctx) string) func([]byte) {
			app := fiber.New(fiber.Config{DisableStartupMessage: true, StreamRequestBody: streams})
			app.Use(fiberlimit.Middleware(checker), func(c *fiber.Ctx) error {
				s.Saw(read(c))
				return c.SendStatus(s.Status(c.Method()))
			})
			return readers.OverFastHTTP(app.Handler(), streams)
		},
	}
}
