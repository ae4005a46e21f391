package fiber3limit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/timeout"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
)

// Fiber's middleware for timeouts answers while the handler still runs. The limiter learns
// the answer, and the handler keeps its decision.
func TestAHandlerThatRunsOnAfterATimeoutKeepsItsDecision(t *testing.T) {
	l, next := outcomesOf(t)
	release, read := make(chan struct{}), make(chan string, 1)
	app := fiber.New()
	app.Get("/", fiber3limit.Middleware(l, fiber3limit.ExposeDecision()), timeout.New(func(c fiber.Ctx) error {
		<-release
		d, found := fiber3limit.DecisionFrom(c)
		if found {
			read <- d.Rule()
		} else {
			read <- "no decision"
		}
		return nil
	}, timeout.Config{Timeout: time.Millisecond}))
	app.Get("/other", fiber3limit.Middleware(newLimiter(t, 100, 0)), func(c fiber.Ctx) error { return c.SendString("ok") })
	get := func(path string, want int) {
		t.Helper()
		resp, err := app.Test(httptest.NewRequest(http.MethodGet, path, http.NoBody), untimed)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
	}
	get("/", http.StatusRequestTimeout)
	if o := next(); o.Status != http.StatusRequestTimeout || o.Canceled {
		t.Errorf("the limiter learnt %+v", o)
	}
	for range 5 {
		get("/other", http.StatusOK)
	}
	close(release)
	if got := <-read; got != "r" {
		t.Errorf("the handler reads the decision of rule %q", got)
	}
}
