package majors_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

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

// fiberNested are the readers of the field user[name].
var fiberNested = map[string]func(fiber.Ctx) string{
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

// fiberPath are the readers of the field name, which is in the object user in JSON.
var fiberPath = map[string]func(fiber.Ctx) string{
	"the query before JSON": func(c fiber.Ctx) string {
		return readers.First(copied(c.Query("name")), fiberNested["Bind().Query"](c), fiberNested["Bind().Body"](c))
	},
}

// fiberMail are the readers of the field mail.
var fiberMail = map[string]func(fiber.Ctx) string{
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

// fiberQuery are the readers of the query parameter id.
var fiberQuery = map[string]func(fiber.Ctx) string{
	"Query": func(c fiber.Ctx) string { return copied(c.Query("id")) },
	"Bind().Query": func(c fiber.Ctx) string {
		var q struct {
			ID string `query:"id"`
		}
		_ = c.Bind().Query(&q)
		return copied(q.ID)
	},
}

// fiberCookies are the readers of the cookie sid.
var fiberCookies = map[string]func(fiber.Ctx) string{
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
