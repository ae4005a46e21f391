package fiberlimit_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

const formType = "application/x-www-form-urlencoded"

// streaming serves an application that streams bodies, at most 100 kB long, and
// echoes them. The limiter reads the body of every request.
func streaming(t *testing.T, quota int64) string {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, StreamRequestBody: true, BodyLimit: 100_000})
	l := core.Must(core.New(core.Config{Name: "streaming", Rules: []core.Rule{{
		Name: "user", Key: keyfuncs.PostField("username", keyfuncs.MaxBody(1000)), Limits: []core.Limit{core.PerMinute(quota)},
	}}}))
	app.All("/", fiberlimit.Middleware(l), func(c *fiber.Ctx) error { return c.Send(c.Body()) })
	return listen(t, app)
}

// exchanges sends a request on a connection and returns the response.
func exchanges(t *testing.T, conn net.Conn, r *bufio.Reader, raw string) (status int, body string) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, raw)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func dialed(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, bufio.NewReader(conn)
}

// This holds for every length and framing. The next request on the connection is read from
// its beginning.
func TestTheHandlerGetsTheWholeStreamedBody(t *testing.T) {
	conn, r := dialed(t, streaming(t, core.MaxQuota))
	for _, method := range []string{"POST", "PUT", "PATCH", "GET"} {
		for _, size := range []int{0, 6, 990, 991, 992, 5000, 90_000} {
			body := ""
			if size > 0 {
				body = "username=" + strings.Repeat("v", size)
			}
			head := method + " / HTTP/1.1\r\nHost: a\r\nContent-Type: " + formType + "\r\n"
			framed := fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
			chunked := head + "Transfer-Encoding: chunked\r\n\r\n"
			if body != "" {
				chunked += fmt.Sprintf("5\r\n%s\r\n%x\r\n%s\r\n", body[:5], len(body)-5, body[5:])
			}
			chunked += "0\r\n\r\n"
			for _, raw := range []string{framed, chunked} {
				if status, got := exchanges(t, conn, r, raw); status != http.StatusOK || got != body {
					t.Errorf("%s, %d bytes: status %d, the handler got %d bytes", method, len(body), status, len(got))
				}
			}
		}
	}
}

// The rest of the body is not read as a request.
func TestAStreamedBodyAboveBodyLimitIsRefused(t *testing.T) {
	addr := streaming(t, core.MaxQuota)
	body := "username=" + strings.Repeat("v", 200_000)
	head := "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: " + formType + "\r\n"
	for _, raw := range []string{
		fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body[:101_000]),
		fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", head, len(body), body[:101_000]),
	} {
		conn, r := dialed(t, addr)
		status, got := exchanges(t, conn, r, raw)
		if status != http.StatusBadRequest || !strings.Contains(got, "longer than 100000 bytes") {
			t.Errorf("status %d, %s", status, got)
		}
		if _, err := r.ReadByte(); err == nil {
			t.Error("the connection is used again")
		}
	}
}

// A client that is denied before its body was read cannot put another request into the body.
func TestAnUnreadBodyIsNotReadAsARequest(t *testing.T) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, StreamRequestBody: true})
	app.All("/", fiberlimit.PerIP(0, time.Minute), func(*fiber.Ctx) error { return nil })
	conn, r := dialed(t, listen(t, app))
	body := strings.Repeat("x", 100_000) + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	if status, _ := exchanges(t, conn, r, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)); status != http.StatusTooManyRequests {
		t.Errorf("status %d", status)
	}
	if resp, err := http.ReadResponse(r, nil); err == nil {
		_ = resp.Body.Close()
		t.Errorf("a second response with status %d", resp.StatusCode)
	}
}

// fasthttp reads the rest of a streamed body as the next request. The package comment says what a
// handler of an allowed request can do.
func TestWhatAHandlerDoesWithABodyThatItDoesNotNeed(t *testing.T) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, StreamRequestBody: true})
	app.All("/:how", fiberlimit.PerIP(100, time.Minute), func(c *fiber.Ctx) error {
		switch c.Params("how") {
		case "close":
			c.Context().SetConnectionClose()
		case "read":
			_, err := io.Copy(io.Discard, c.Context().RequestBodyStream())
			return err
		}
		return nil
	})
	addr := listen(t, app)
	body := "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n" + strings.Repeat("x", 100_000)
	for how, want := range map[string]int{"close": 0, "read": 1} {
		conn, r := dialed(t, addr)
		raw := fmt.Sprintf("POST /%s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", how, len(body), body)
		if status, _ := exchanges(t, conn, r, raw+"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); status != http.StatusOK {
			t.Errorf("%s: status %d", how, status)
		}
		for n := 0; ; n++ {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				if n != want {
					t.Errorf("%s: %d responses more, want %d", how, n, want)
				}
				break
			}
			if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: a second response with status %d", how, resp.StatusCode)
			}
		}
	}
}

// A middleware that has read from the stream may have passed the text to the handler. The
// request is refused for every framing, and the next request on the connection is read from
// its beginning.
func TestAStreamThatWasReadBeforeIsRefused(t *testing.T) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, StreamRequestBody: true})
	l := core.Must(core.New(core.Config{Name: "read-before", Rules: []core.Rule{{
		Name: "user", Key: keyfuncs.PostField("username"), Limits: []core.Limit{core.PerMinute(core.MaxQuota)},
	}}}))
	app.Use(func(c *fiber.Ctx) error {
		if stream := c.Context().RequestBodyStream(); stream != nil {
			n, _ := strconv.ParseInt(c.Get("X-Read"), 10, 64)
			_, _ = io.CopyN(io.Discard, stream, n)
		}
		return c.Next()
	})
	app.All("/", fiberlimit.Middleware(l), func(c *fiber.Ctx) error { return c.Send(c.Body()) })
	addr := listen(t, app)
	body := "username=" + strings.Repeat("v", 20_000)
	for _, read := range []int{0, 1, 10, len(body) - 1, len(body)} {
		head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nX-Read: %d\r\nContent-Type: %s\r\n", read, formType)
		for framing, raw := range map[string]string{
			"length": fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body),
			"chunks": fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", head, body[:5], len(body)-5, body[5:]),
			"empty":  head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		} {
			want, wantBody := http.StatusBadRequest, ""
			switch {
			case framing == "empty" && read > 0:
				continue // fasthttp waits for another chunk after the last one
			case framing == "empty":
				want = http.StatusOK
			case read == 0:
				want, wantBody = http.StatusOK, body
			}
			conn, r := dialed(t, addr)
			status, got := exchanges(t, conn, r, raw)
			if status != want || want == http.StatusOK && got != wantBody || want != http.StatusOK && !strings.Contains(got, "was read by a middleware") {
				t.Errorf("%s, %d bytes were read: status %d, %d bytes of body, want %d", framing, read, status, len(got), want)
			}
		}
	}
}
