package fiberlimit_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// fasthttp writes a multipart form anew after it has parsed it. A form with its boundary in a
// part is refused then, because that may have made other parts. If the application parses the forms itself,
// the body is as it was received, and a key function reads it.
func TestABoundaryInAPartOfAForm(t *testing.T) {
	for keeps, want := range map[bool][]int{true: {200, 429, 200}, false: {400, 400, 400}} {
		app := fiber.New(fiber.Config{DisablePreParseMultipartForm: keeps})
		l := core.Must(core.New(core.Config{Log: slog.New(slog.DiscardHandler), Rules: []core.Rule{{Name: "r", Key: keyfuncs.PostField("username"), Limits: []core.Limit{core.PerHour(1)}}}}))
		app.Post("/", fiberlimit.Middleware(l), func(*fiber.Ctx) error { return nil })
		var got []int
		for _, name := range []string{"alice", "alice", "bob"} {
			body := "--XX\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\n" + name + "\r\n" +
				"--XX\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\na--XXb\r\n--XX--\r\n"
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			r.Header.Set("Content-Type", "multipart/form-data; boundary=XX")
			resp, err := app.Test(r, -1)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			got = append(got, resp.StatusCode)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the application parses forms itself: %t: statuses %v, want %v", keeps, got, want)
		}
	}
}
