package majors_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/static"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/internal/pathtest"
	"github.com/floodgate-go/floodgate/internal/readers"
	"github.com/floodgate-go/floodgate/policy"
)

// Bind().All also reads headers and cookies, if the body has no name or an empty one.
func TestANameInAHeaderOrACookieIsNotRead(t *testing.T) {
	for _, s := range inFiber(false).Sites(fiberNames, readers.Guarded(t, readers.ByField("username"))) {
		for _, lines := range []string{"Username: victim\r\n", "Cookie: username=victim\r\n", "Cookie: Username=victim\r\nusername: victim\r\n"} {
			for _, body := range []string{"", "username=", "username=+", "username=%E2%80%8B", "password=x", "username=decoy"} {
				raw := fmt.Sprintf("POST /login HTTP/1.1\r\nHost: a\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", lines, readers.FormType, len(body), body)
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

// Whatever spelling of a path reaches a handler, the handler's policy counts it, in all of
// Fiber's modes for paths.
func TestNoSpellingOfAPathGetsAroundItsPolicyInFiber(t *testing.T) {
	set, dir := pathtest.Policies(t), pathtest.Folder(t)
	for mode := range 8 {
		f := fiber.New(fiber.Config{CaseSensitive: mode&1 != 0, StrictRouting: mode&2 != 0, UnescapePath: mode&4 != 0})
		f.Use(fiber3limit.Middleware(set))
		for _, r := range pathtest.Routes {
			f.All(r.Route, named(r.Name))
		}
		f.All("/api", named("api"))
		f.All("/api/*", named("api"))
		f.Use("/files", static.New(dir, static.Config{Next: func(c fiber.Ctx) bool { // or it serves /filesbig.bin too
			return !strings.HasPrefix(strings.ToLower(c.Path()), "/files/")
		}}))
		pathtest.Compare(t, pathtest.Site{Name: fmt.Sprintf("fiber v3, mode %03b", mode), Address: serve(t, f)}, 200)
	}
}

func named(name string) fiber.Handler {
	return func(c fiber.Ctx) error {
		c.Set(pathtest.Header, name)
		return nil
	}
}

// serve serves an application over connections.
func serve(t *testing.T, f *fiber.App) string {
	t.Helper()
	l, ended := pathtest.Listen(t), make(chan error, 1)
	go func() { ended <- f.Listener(l, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		if err := f.Shutdown(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return l.Addr().String()
}

// to gives a request to POST /second.
func to(next func(fiber.Ctx) error) fiber.Handler {
	return func(c fiber.Ctx) error {
		c.Method(http.MethodPost)
		c.Path("/second")
		return next(c)
	}
}

func TestARequestThatFiberRoutesAgainIsCountedForItsNewPath(t *testing.T) {
	t.Run("RestartRouting", func(t *testing.T) {
		pathtest.Rerouted(t, func(set *policy.Set) string {
			f := fiber.New()
			f.Use(fiber3limit.Middleware(set))
			f.Get("/first", to(fiber.Ctx.RestartRouting))
			f.Post("/second", named("second"))
			return serve(t, f)
		})
	})
	t.Run("the next route", func(t *testing.T) {
		pathtest.Rerouted(t, func(set *policy.Set) string {
			f := fiber.New()
			f.Use(fiber3limit.Middleware(set), to(fiber.Ctx.Next))
			f.Post("/second", fiber3limit.Middleware(set), named("second"))
			return serve(t, f)
		})
	})
}

func TestPoliciesThatWaitAndPoliciesByParameterInFiber(t *testing.T) {
	pathtest.WaitsByParameter(t, func(set *policy.Set, handle func()) string {
		f, h := fiber.New(), func(fiber.Ctx) error { handle(); return nil }
		f.Get("/tenants/:id", fiber3limit.Middleware(set), h)
		f.Get("/slow", fiber3limit.Middleware(set), h)
		return serve(t, f)
	})
}
