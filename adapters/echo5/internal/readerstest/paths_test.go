package readerstest

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/internal/pathtest"
)

// Whatever spelling of a path reaches a handler, the handler's policy counts it: with policies
// that are mounted after routing, before it, and outside of Echo.
func TestNoSpellingOfAPathGetsAroundItsPolicy(t *testing.T) {
	set, dir := pathtest.Policies(t), pathtest.Folder(t)
	for _, where := range []string{"Use", "Pre", "outside"} {
		e := echo.New()
		e.Logger = slog.New(slog.DiscardHandler)
		var h http.Handler = e
		switch where {
		case "Use":
			e.Use(echo5limit.Middleware(set))
		case "Pre":
			e.Pre(echo5limit.Middleware(set))
		default:
			h = httplimit.Middleware(set)(e)
		}
		for _, m := range pathtest.Methods {
			for _, r := range pathtest.Routes {
				e.Add(m, r.Route, echo.WrapHandler(pathtest.Handler(r.Name)))
			}
			e.Add(m, "/api", echo.WrapHandler(pathtest.Handler("api")))
			e.Add(m, "/api/*", echo.WrapHandler(pathtest.Handler("api")))
		}
		e.Static("/files/", dir)
		pathtest.Compare(t, pathtest.Site{Name: "echo v5, " + where, Address: pathtest.Serve(t, h), HTTP2: true, OuterEcho: where != "Use"}, 200)
	}
}
