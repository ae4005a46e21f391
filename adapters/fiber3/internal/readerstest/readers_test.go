package readerstest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/adapters/fiber3/internal/fiberreaders"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers/attack"
)

// Whatever an attacker sends, the name that a handler reads is the one that was counted, or
// the request is refused.
func TestAHandlerReadsTheNameThatWasCounted(t *testing.T) {
	attack.Run(t, attack.Framework[fiber.Ctx]{
		Name: "Fiber v3", ByField: fiberreaders.ByField, Query: fiberreaders.Query, Serve: site,
	})
}

func site(s *attack.Site, checker core.Checker, read func(fiber.Ctx) string) func([]byte) {
	app := fiber.New()
	app.Use(fiber3limit.Middleware(checker), func(c fiber.Ctx) error {
		s.Saw(read(c))
		return c.SendStatus(s.Status(c.Method()))
	})
	serve := app.Handler()
	buffer := bufio.NewReaderSize(nil, 1<<18)
	return func(raw []byte) {
		var ctx fasthttp.RequestCtx
		buffer.Reset(bytes.NewReader(raw))
		ctx.Init(new(fasthttp.Request), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}, nil)
		if err := ctx.Request.ReadLimitBody(buffer, 1<<20); err != nil {
			return // the server refuses it
		}
		serve(&ctx)
		ctx.Request.RemoveMultipartFormFiles()
	}
}

// Bind().All also reads headers and cookies, if the body has no name or an empty one.
func TestANameInAHeaderOrACookieIsNotRead(t *testing.T) {
	for name, read := range fiberreaders.ByField["username"] {
		s := &attack.Site{Name: name}
		s.Serve = site(s, attack.Guarded(t, attack.ByField("username"))(s), read)
		for _, lines := range []string{"Username: victim\r\n", "Cookie: username=victim\r\n", "Cookie: Username=victim\r\nusername: victim\r\n"} {
			for _, body := range []string{"", "username=", "username=+", "username=%E2%80%8B", "password=x", "username=decoy"} {
				raw := fmt.Sprintf("POST /login HTTP/1.1\r\nHost: a\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", lines, attack.Form, len(body), body)
				if err := s.Try([]byte(raw)); err != nil {
					t.Errorf("%q, %q: %v", lines, body, err)
				}
				if s.Reached && strings.Contains(s.Read, "victim") {
					t.Errorf("%q, %q: the handler read the victim's name", lines, body)
				}
			}
		}
	}
}
