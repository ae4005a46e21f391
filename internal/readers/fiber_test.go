package readers_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

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

// fiberNested are the readers of the field user[name].
var fiberNested = map[string]func(*fiber.Ctx) string{
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

// fiberPath are the readers of the field name, which is in the object user in JSON.
var fiberPath = map[string]func(*fiber.Ctx) string{
	"the query before JSON": func(c *fiber.Ctx) string {
		return readers.First(copied(c.Query("name")), fiberNested["QueryParser"](c), fiberNested["BodyParser"](c))
	},
}

// fiberMail are the readers of the field mail.
var fiberMail = map[string]func(*fiber.Ctx) string{
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

// fiberQuery are the readers of the query parameter id.
var fiberQuery = map[string]func(*fiber.Ctx) string{
	"Query": func(c *fiber.Ctx) string { return copied(c.Query("id")) },
	"QueryParser": func(c *fiber.Ctx) string {
		var q struct {
			ID string `query:"id"`
		}
		_ = c.QueryParser(&q)
		return copied(q.ID)
	},
}

// fiberCookies are the readers of the cookie sid.
var fiberCookies = map[string]func(*fiber.Ctx) string{
	"Cookies": func(c *fiber.Ctx) string { return copied(c.Cookies("sid")) },
	"CookieParser": func(c *fiber.Ctx) string {
		var f readers.Cookies
		_ = c.CookieParser(&f)
		return copied(f.Session)
	},
}

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
			return overFastHTTP(app.Handler(), streams)
		},
	}
}

// overFastHTTP reads a request as the server does, and passes it to a handler of fasthttp.
func overFastHTTP(serve fasthttp.RequestHandler, streams bool) func([]byte) {
	buffer := bufio.NewReaderSize(nil, 1<<18)
	return func(raw []byte) {
		var ctx fasthttp.RequestCtx
		buffer.Reset(bytes.NewReader(raw))
		ctx.Init(new(fasthttp.Request), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}, nil)
		var err error
		if streams {
			if err = ctx.Request.Header.Read(buffer); err == nil {
				err = ctx.Request.ContinueReadBodyStream(buffer, 1<<20, true)
			}
		} else {
			err = ctx.Request.ReadLimitBody(buffer, 1<<20)
		}
		if err != nil {
			return // the server refuses it
		}
		serve(&ctx)
		ctx.Request.RemoveMultipartFormFiles()
	}
}
