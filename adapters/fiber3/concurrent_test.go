package fiber3limit_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func named(t *testing.T, name string) *core.Limiter {
	t.Helper()
	l, err := core.New(core.Config{Name: name, Rules: []core.Rule{{Name: "key", Key: keyfuncs.Header("Key"), Limits: []core.Limit{core.PerHour(1000)}}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Handlers read the decisions of their own requests during the whole request, however many requests are served at the same time, and
// on connections that stay open.
func TestHandlersReadTheDecisionsOfTheirOwnRequests(t *testing.T) {
	outer, inner := named(t, "outer"), named(t, "inner")
	f := fiber.New()
	f.Use(func(f fiber.Ctx) error {
		err := f.Next()
		if d, found := fiber3limit.DecisionFrom(f); !found || f.GetRespHeader("Decision") != fmt.Sprint(d.Limiter, d.Remaining) {
			t.Errorf("after the handler, the decision is %v, %t", d, found)
		}
		return err
	}, fiber3limit.Middleware(outer))
	f.Get("/", fiber3limit.Middleware(inner), fiber3limit.Middleware(outer), func(f fiber.Ctx) error {
		d, _ := fiber3limit.DecisionFrom(f)
		f.Set("Decision", fmt.Sprint(d.Limiter, d.Remaining))
		return nil
	})
	handler := f.Handler()
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			var c fasthttp.RequestCtx
			for n := range 200 {
				c.Request.SetRequestURI("/")
				c.Request.Header.Set("Key", fmt.Sprint(client))
				c.Response.Reset()
				handler(&c)
				if got, want := string(c.Response.Header.Peek("Decision")), fmt.Sprint("inner", 999-n); got != want || c.Response.StatusCode() != http.StatusOK {
					t.Errorf("client %d, request %d: status %d, decision %q, want %q", client, n, c.Response.StatusCode(), got, want)
				}
				c.ResetUserValues() // as a server does when a request has ended
			}
		})
	}
	clients.Wait()
}
