package fiberlimit

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func newLimiter(t *testing.T, name string) *core.Limiter {
	t.Helper()
	l, err := core.New(core.Config{Name: name, Rules: []core.Rule{{Name: "key", Key: keyfuncs.Header("Key"), Limits: []core.Limit{core.PerHour(1000)}}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A visit is reused only after its request has ended.
func TestAVisitIsReusedByOneRequestOnly(t *testing.T) {
	a, b := mounting.NewPlace("test", newLimiter(t, "a")), mounting.NewPlace("test", newLimiter(t, "b"))
	first := newVisit(nil, &a, nil)
	first.local = true
	second := newVisit(nil, &b, first)
	second.local = true
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if first.local || second.local {
		t.Error("Close has not freed all visits of the request")
	}
	// Of the next visits, two at most are these; none may be the same.
	_ = second.Close()
	seen := map[*visit]bool{}
	for range 8 {
		v := newVisit(nil, &a, nil)
		if seen[v] {
			t.Fatal("two requests have the same visit")
		}
		if seen[v] = true; v.Origin != nil || v.Before != nil || v.before != nil {
			t.Errorf("a visit remembers the request before: %+v", v)
		}
	}
}

// They do so during the whole request, however many requests are served at the same time, and
// on connections that stay open.
func TestHandlersReadTheDecisionsOfTheirOwnRequests(t *testing.T) {
	outer, inner := newLimiter(t, "outer"), newLimiter(t, "inner")
	f := fiber.New()
	f.Use(func(f *fiber.Ctx) error {
		err := f.Next()
		if d, found := DecisionFrom(f); !found || f.GetRespHeader("Decision") != fmt.Sprint(d.Limiter, d.Remaining) {
			t.Errorf("after the handler, the decision is %v, %t", d, found)
		}
		return err
	}, Middleware(outer))
	f.Get("/", Middleware(inner), Middleware(outer), func(f *fiber.Ctx) error {
		d, _ := DecisionFrom(f)
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
