package fiber3limit_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
)

// The body does not reach a handler. The package comment describes this.
func TestAClientThatWaitsForContinueIsDeniedAfterItsBody(t *testing.T) {
	app := newFiber(false, false)
	app.Post("/", fiber3limit.PerIP(0, time.Minute), func(fiber.Ctx) error {
		t.Error("the handler runs")
		return nil
	})
	conn, err := net.Dial("tcp", listen(t, app))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // of no interest any more
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	body := strings.Repeat("x", 1000)
	_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	r := bufio.NewReader(conn)
	for _, want := range []int{http.StatusContinue, http.StatusTooManyRequests} {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("status %d, want %d", resp.StatusCode, want)
		}
		if want == http.StatusContinue {
			_, _ = fmt.Fprint(conn, body)
		}
	}
}
