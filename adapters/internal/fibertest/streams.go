package fibertest

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func echo(c Ctx) error {
	c.RequestCtx().SetBody(c.RequestCtx().Request.Body())
	return nil
}

// streaming serves an application that takes bodies of at most 100 kB and echoes them. The limiter
// reads the body of every request.
func streaming(t *testing.T, f Fiber) string {
	return serve(t, f, App{Streams: true, BodyLimit: 100_000, Limiter: hooktest.ByKey(t, keyfuncs.PostField("username"), core.MaxQuota), Handler: echo})
}

// The body does not reach a handler. The package comments of the adapters describe this.
func waitsForContinue(t *testing.T, f Fiber) {
	conn, r := dialed(t, serve(t, f, App{Limiter: hooktest.ByKey(t, keyfuncs.ClientIP(), 0), Handler: func(Ctx) error {
		t.Error("the handler runs")
		return nil
	}}))
	body := strings.Repeat("x", 1000)
	status, _ := exchanges(t, conn, r, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)))
	if status != http.StatusContinue {
		t.Fatalf("status %d", status)
	}
	if status, _ = exchanges(t, conn, r, body); status != http.StatusTooManyRequests {
		t.Errorf("status %d", status)
	}
}

// This holds for every length and framing. The next request on the connection is read from its
// beginning.
func whole(t *testing.T, f Fiber) {
	conn, r := dialed(t, streaming(t, f))
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
func tooLong(t *testing.T, f Fiber) {
	addr := streaming(t, f)
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
func unread(t *testing.T, f Fiber) {
	conn, r := dialed(t, serve(t, f, App{Streams: true, Limiter: hooktest.ByKey(t, keyfuncs.ClientIP(), 0), Handler: nothing}))
	body := strings.Repeat("x", 100_000) + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	if status, _ := exchanges(t, conn, r, post("/", "", body)); status != http.StatusTooManyRequests {
		t.Errorf("status %d", status)
	}
	if resp, err := http.ReadResponse(r, nil); err == nil {
		_ = resp.Body.Close()
		t.Errorf("a second response with status %d", resp.StatusCode)
	}
}

// fasthttp reads the rest of a streamed body as the next request. The package comment says what a
// handler of an allowed request can do.
func notNeeded(t *testing.T, f Fiber) {
	addr := serve(t, f, App{Streams: true, Path: "/:how", Limiter: hooktest.ByKey(t, keyfuncs.ClientIP(), 100), Handler: func(c Ctx) error {
		switch c.Params("how") {
		case "close":
			c.RequestCtx().SetConnectionClose()
		case "read":
			_, err := io.Copy(io.Discard, c.RequestCtx().RequestBodyStream())
			return err
		}
		return nil
	}})
	body := "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n" + strings.Repeat("x", 100_000)
	for how, want := range map[string]int{"close": 0, "read": 1} {
		conn, r := dialed(t, addr)
		if status, _ := exchanges(t, conn, r, post("/"+how, "", body)+"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); status != http.StatusOK {
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

// A middleware that has read from the stream may have passed the text to the handler. The request
// is refused for every framing, and the next request on the connection is read from its beginning.
func readBefore(t *testing.T, f Fiber) {
	addr := serve(t, f, App{Streams: true, Limiter: hooktest.ByKey(t, keyfuncs.PostField("username"), core.MaxQuota), Handler: echo, Before: func(c Ctx) error {
		if stream := c.RequestCtx().RequestBodyStream(); stream != nil {
			n, _ := strconv.ParseInt(string(c.RequestCtx().Request.Header.Peek("X-Read")), 10, 64)
			_, _ = io.CopyN(io.Discard, stream, n)
		}
		return c.Next()
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
