package readerstest

import (
	"log/slog"
	"testing"

	"github.com/labstack/echo/v5"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/adapters/echo5/internal/echoreaders"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers/attack"
)

// Whatever an attacker sends, the name that a handler reads is the one that was counted, or
// the request is refused.
func TestAHandlerReadsTheNameThatWasCounted(t *testing.T) {
	attack.Run(t, attack.Framework[*echo.Context]{
		Name: "Echo v5", ByField: echoreaders.ByField, Query: echoreaders.Query,
		Serve: func(s *attack.Site, checker core.Checker, read func(*echo.Context) string) func([]byte) {
			e := echo.New()
			e.Logger = slog.New(slog.DiscardHandler)
			e.RouteNotFound("/*", func(c *echo.Context) error {
				s.Saw(read(c))
				return c.NoContent(s.Status(c.Request().Method))
			}, echo5limit.Middleware(checker))
			return attack.OverHTTP(e)
		},
	})
}
