package fibertest

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

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Ctx is the context of a request as both majors have it.
type Ctx interface {
	Get(header string) string
	Param(name string) string
	Body() []byte
	// Stream returns the body that is streamed; nil: there is none.
	Stream() io.Reader
	Send(body []byte) error
	// CloseConnection makes the server close the connection after the response.
	CloseConnection()
}

// App is an application whose bodies are streamed, in no major's words.
type App struct {
	BodyLimit int // 0: Fiber's
	Path      string
	Before    func(c Ctx) // before the limiter; nil: nothing
	Limiter   *core.Limiter
	Handler   func(c Ctx) error
}

// Serve starts an app on a free port of 127.0.0.1 and returns the address. It registers with t what
// stops it.
type Serve func(t *testing.T, app App) (addr string)

// Streams runs the tests of streamed bodies.
func Streams(t *testing.T, serve Serve) {
	for name, test := range map[string]func(*testing.T, Serve){
		"the handler gets the whole body":                       whole,
		"a body above BodyLimit is refused":                     tooLong,
		"an unread body is not read as a request":               unread,
		"what a handler does with a body that it does not need": notNeeded,
		"a stream that was read before is refused":              readBefore,
	} {
		t.Run(name, func(t *testing.T) { test(t, serve) })
	}
}

func echo(c Ctx) error { return c.Send(c.Body()) }

// limiter makes a limiter of quota requests a minute.
func limiter(key core.KeyFunc, quota int64) *core.Limiter {
	return core.Must(core.New(core.Config{Name: "streams", Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{core.PerMinute(quota)}}}}))
}

const formType = "application/x-www-form-urlencoded"

// streaming serves an application that takes bodies of at most 100 kB and echoes them. The limiter
// reads the body of every request.
func streaming(t *testing.T, serve Serve) string {
	key := keyfuncs.PostField("username")
	return serve(t, App{BodyLimit: 100_000, Path: "/", Limiter: limiter(key, core.MaxQuota), Handler: echo})
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
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, bufio.NewReader(conn)
}

// This holds for every length and framing. The next request on the connection is read from
// its beginning.
func whole(t *testing.T, serve Serve) {
	conn, r := dialed(t, streaming(t, serve))
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
func tooLong(t *testing.T, serve Serve) {
	addr := streaming(t, serve)
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
func unread(t *testing.T, serve Serve) {
	nothing := func(Ctx) error { return nil }
	conn, r := dialed(t, serve(t, App{Path: "/", Limiter: limiter(keyfuncs.ClientIP(), 0), Handler: nothing}))
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
func notNeeded(t *testing.T, serve Serve) {
	addr := serve(t, App{Path: "/:how", Limiter: limiter(keyfuncs.ClientIP(), 100), Handler: func(c Ctx) error {
		switch c.Param("how") {
		case "close":
			c.CloseConnection()
		case "read":
			_, err := io.Copy(io.Discard, c.Stream())
			return err
		}
		return nil
	}})
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
func readBefore(t *testing.T, serve Serve) {
	addr := serve(t, App{Path: "/", Limiter: limiter(keyfuncs.PostField("username"), core.MaxQuota), Handler: echo, Before: func(c Ctx) {
		if stream := c.Stream(); stream != nil {
			n, _ := strconv.ParseInt(c.Get("X-Read"), 10, 64)
			_, _ = io.CopyN(io.Discard, stream, n)
		}
	}})
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
