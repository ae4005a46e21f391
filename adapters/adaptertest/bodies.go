package adaptertest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// byField is an application whose POST /login is limited to n requests for
// each username in the body, and to 1,000 for each address.
func byField(t *testing.T, n int64, handler Handler) App {
	l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(1000)}},
		{Name: "user", Key: keyfuncs.PostField("username"), Limits: []core.Limit{core.PerMinute(n)}},
	}})
	return App{Routes: []Route{{Method: http.MethodPost, Pattern: "/login", Limits: []Limit{{Checker: l}}, Handler: handler}}}
}

const (
	formType      = "application/x-www-form-urlencoded"
	jsonType      = "application/json"
	multipartType = "multipart/form-data; boundary=XX"
)

func multipartBody(name, value string) string {
	return "--XX\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n--XX--\r\n"
}

func twoParts(name1, value1, name2, value2 string) string {
	return strings.TrimSuffix(multipartBody(name1, value1), "--XX--\r\n") + multipartBody(name2, value2)
}

func bodies(t *testing.T, a Adapter) {
	t.Run("the handler gets the body as it came", func(t *testing.T) {
		c := direct(t, a.Serve(t, byField(t, 1000, func(c Context) error {
			b, err := c.Body()
			if err != nil {
				return err
			}
			sum := sha256.Sum256(b)
			return c.Respond(http.StatusOK, hex.EncodeToString(sum[:]))
		})))
		for _, size := range []int{1, 100, 64<<10 - 9, 64 << 10, 1 << 20} {
			body := "username=" + strings.Repeat("a", size)
			sum := sha256.Sum256([]byte(body))
			if got := c.post("/login", body); got.status != http.StatusOK || got.body != hex.EncodeToString(sum[:]) {
				t.Errorf("%d bytes: status %d, hash %s", len(body), got.status, got.body)
			}
		}
	})

	t.Run("a chunked body", func(t *testing.T) {
		c := direct(t, a.Serve(t, byField(t, 1, func(c Context) error {
			b, err := c.Body()
			if err != nil {
				return err
			}
			return c.Respond(http.StatusOK, string(b))
		})))
		const chunked = "POST /login HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n" +
			"5\r\nusern\r\n9\r\name=alice\r\n0\r\n\r\n"
		if got := []int{c.raw(chunked), c.raw(chunked)}; got[0] != 200 || got[1] != 429 {
			t.Errorf("statuses %v", got)
		}
	})

	t.Run("the handler parses again", func(t *testing.T) {
		c := direct(t, a.Serve(t, byField(t, 1000, func(c Context) error {
			if strings.HasPrefix(c.Header("Content-Type"), "application/json") {
				var v struct{ Username string }
				if err := c.JSON(&v); err != nil {
					return err
				}
				return c.Respond(http.StatusOK, v.Username)
			}
			return c.Respond(http.StatusOK, c.Form("username"))
		})))
		for _, row := range []struct{ contentType, body string }{
			{"application/x-www-form-urlencoded", "username=alice"},
			{multipartType, multipartBody("username", "alice")},
			{"application/json", `{"username":"alice"}`},
		} {
			if got := c.do(http.MethodPost, "/login", row.body, "Content-Type", row.contentType); got.body != "alice" {
				t.Errorf("%s: status %d, body %q", row.contentType, got.status, got.body)
			}
		}
	})

	for _, row := range []struct {
		name        string
		contentType string
		body        func(i int) string
		query       func(i int) string
		passed      int  // of 6, at 3 each
		broken      bool // the body is malformed
	}{
		{"a form whose field is in the query too is refused", "application/x-www-form-urlencoded", text("username=alice"), numbered("?username=%d"), 0, false},
		{"so is a multipart form", multipartType, text(multipartBody("username", "alice")), numbered("?username=%d"), 0, false},
		{"another parameter of the query changes nothing", "application/x-www-form-urlencoded", text("username=alice"), numbered("?user=%d"), 3, false},
		{"fields tell users apart", "application/x-www-form-urlencoded", numbered("username=u%d"), nil, 6, false},
		{"multipart fields tell users apart", multipartType, func(i int) string { return multipartBody("username", fmt.Sprint(i)) }, nil, 6, false},
		{"JSON fields tell users apart", "application/json", numbered(`{"username":"u%d"}`), nil, 6, false},
		{"what is too long shares a quota", "application/x-www-form-urlencoded", func(i int) string {
			return fmt.Sprintf("username=u%d&pad=", i) + strings.Repeat("x", 64<<10)
		}, nil, 3, false},
		{"a file is no value", multipartType, func(i int) string {
			return "--XX\r\nContent-Disposition: form-data; name=\"username\"; filename=\"f\"\r\n\r\n" + fmt.Sprint(i) + "\r\n--XX--\r\n"
		}, nil, 3, false},
		{"a form without an end shares a quota", multipartType, numbered("--XX\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\nu%d"), nil, 3, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if a.ReadsFirst && row.broken {
				t.Skip("the server itself refuses a body that it cannot parse")
			}
			c := direct(t, a.Serve(t, byField(t, 3, ok)))
			passed := count(6, func(i int) response {
				query := ""
				if row.query != nil {
					query = row.query(i)
				}
				return c.do(http.MethodPost, "/login"+query, row.body(i), "Content-Type", row.contentType)
			})[http.StatusOK]
			if passed != row.passed {
				t.Errorf("%d of 6 passed, want %d", passed, row.passed)
			}
		})
	}

	// Nothing is inflated, however far it would go.
	t.Run("what is compressed shares a quota", func(t *testing.T) {
		var bomb bytes.Buffer
		w := gzip.NewWriter(&bomb)
		_, _ = io.CopyN(w, endless{}, 5<<20) // 5 kB of body: fasthttp reads a stream so far itself, and would take more that no handler reads for a request
		_ = w.Close()
		c := direct(t, a.Serve(t, byField(t, 3, ok)))
		want(t, count(6, func(int) response {
			return c.do(http.MethodPost, "/login", bomb.String(), "Content-Type", "application/json", "Content-Encoding", "gzip")
		}), 200, 3, 429, 3)
	})

	t.Run("the body of a client over its address limit is not read", func(t *testing.T) {
		var reads atomic.Int64
		field := keyfuncs.PostField("username")
		l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{
			{Name: "user", Key: func(dst []byte, r core.Request) ([]byte, error) {
				if _, err := r.Body(1); err == nil {
					reads.Add(1)
				}
				return field(dst, r)
			}, Limits: []core.Limit{core.PerMinute(1000)}},
			{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(1)}},
		}})
		c := direct(t, a.Serve(t, App{Routes: []Route{{Method: http.MethodPost, Pattern: "/login", Limits: []Limit{{Checker: l}}, Handler: ok}}}))
		want(t, count(3, func(int) response { return c.post("/login", "username=alice") }), 200, 1, 429, 2)
		if got := reads.Load(); got != 1 {
			t.Errorf("the body was read for %d requests, want 1", got)
		}
	})

	t.Run("a denied client is not told to go on", func(t *testing.T) {
		if a.ReadsFirst {
			t.Skip("the server reads the body before any handler runs")
		}
		app := byField(t, 1000, ok)
		app.Limits = []Limit{{Checker: hooktest.ByKey(t, keyfuncs.ClientIP(), 0)}}
		c := direct(t, a.Serve(t, app))
		for _, expect := range []string{"Expect: 100-continue\r\n", ""} {
			if status := c.raw("POST /login HTTP/1.1\r\nHost: a\r\n" + expect + "Content-Length: 1000000\r\nContent-Type: application/json\r\n\r\n"); status != http.StatusTooManyRequests {
				t.Errorf("%q: the first response has status %d", expect, status)
			}
		}
	})

	t.Run("a body that ends early is the client's fault", func(t *testing.T) {
		addr := a.Serve(t, byField(t, 1000, ok))
		conn, err := dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte("POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n{"))
		_ = conn.Close()
		// The server goes on.
		if got := direct(t, addr).post("/login", "username=alice"); got.status != http.StatusOK {
			t.Errorf("status %d", got.status)
		}
	})
}

// endless is a body of spaces.
type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func text(s string) func(int) string { return func(int) string { return s } }

func numbered(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}
