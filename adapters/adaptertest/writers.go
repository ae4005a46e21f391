package adaptertest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/internal/hooktest"
)

func writers(t *testing.T, a Adapter) {
	t.Run("a part of a response arrives before the next is made", func(t *testing.T) {
		if !a.Flushes {
			t.Skip("a handler cannot send a part of a response")
		}
		w := hooktest.Watch(t)
		parts := make(chan string)
		addr := a.Serve(t, App{Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{{Checker: w}}, Handler: func(c Context) error {
			c.SetHeader("Content-Type", "text/event-stream")
			return c.Stream(func() string { return <-parts })
		}}}})
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+addr+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := func() (*http.Response, error) {
			go func() { parts <- "data: 1\n\n" }()
			return direct(t, addr).http.Do(req)
		}()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // only read from
		lines := bufio.NewReader(resp.Body)
		for _, event := range []string{"data: 1\n", "data: 2\n", "data: 3\n"} {
			// The next part is made only after this one has arrived.
			if line, err := lines.ReadString('\n'); err != nil || line != event {
				t.Fatalf("read %q, %v, want %q", line, err, event)
			}
			_, _ = lines.ReadString('\n')
			if event != "data: 3\n" {
				parts <- strings.Replace(event, event[6:7], string(event[6]+1), 1) + "\n"
			}
		}
		parts <- ""
		if o := w.Next(t); o.Status != http.StatusOK {
			t.Errorf("the limiter learnt %+v", o)
		}
	})
	t.Run("http.ResponseController finds the server's writer", func(t *testing.T) {
		if a.ServeHTTP2 == nil {
			t.Skip("the framework is not one of net/http")
		}
		c := direct(t, a.Serve(t, App{Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{{Checker: hooktest.Watch(t)}}, Handler: func(c Context) error {
			w := http.NewResponseController(c.(interface{ Writer() http.ResponseWriter }).Writer())
			if err := errors.Join(w.SetWriteDeadline(time.Now().Add(timeout)), w.SetReadDeadline(time.Now().Add(timeout)), w.EnableFullDuplex()); err != nil {
				t.Error(err)
			}
			return ok(c)
		}}}}))
		want(t, count(1, func(int) response { return c.get("/") }), 200, 1)
	})
	t.Run("a handler takes over the connection", func(t *testing.T) {
		if !a.Hijacks {
			t.Skip("a handler cannot take over the connection")
		}
		w := hooktest.Watch(t)
		addr := a.Serve(t, App{Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{{Checker: w}}, Handler: func(c Context) error {
			return c.Hijack("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nhello", nil)
		}}}})
		conn, err := dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // of no interest any more
		_ = conn.SetDeadline(time.Now().Add(timeout))
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 101 ") || !strings.HasSuffix(string(answer), "hello") {
			t.Errorf("read %q, %v", answer, err)
		}
		if o := w.Next(t); o.Status != http.StatusSwitchingProtocols {
			t.Errorf("the limiter learnt %+v", o)
		}
	})
}
