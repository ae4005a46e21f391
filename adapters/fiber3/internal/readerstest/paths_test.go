package readerstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/static"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/internal/pathtest"
)

// Whatever spelling of a path reaches a handler, the handler's policy counts it, in all of
// Fiber's modes for paths.
func TestNoSpellingOfAPathGetsAroundItsPolicy(t *testing.T) {
	set, dir := pathtest.Policies(t), pathtest.Folder(t)
	for mode := range 8 {
		f := fiber.New(fiber.Config{CaseSensitive: mode&1 != 0, StrictRouting: mode&2 != 0, UnescapePath: mode&4 != 0})
		f.Use(fiber3limit.Middleware(set))
		for _, r := range pathtest.Routes {
			f.All(r.Route, handler(r.Name))
		}
		f.All("/api", handler("api"))
		f.All("/api/*", handler("api"))
		f.Use("/files", static.New(dir, static.Config{Next: func(c fiber.Ctx) bool { // or it serves /filesbig.bin too
			return !strings.HasPrefix(strings.ToLower(c.Path()), "/files/")
		}}))
		pathtest.Compare(t, pathtest.Site{Name: fmt.Sprintf("fiber v3, mode %03b", mode), Address: serve(t, f)}, 200)
	}
}

func handler(name string) fiber.Handler {
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
