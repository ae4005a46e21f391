package adaptertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// readBefore shows that no body is taken for an empty one, or for a shorter one,
// because a middleware before the limiter has read from it: the handler may have
// the username from that middleware. Such a request is the client's fault in no
// way, but only 400 keeps it from the handler for sure.
func readBefore(t *testing.T, a Adapter) {
	const chunked = "chunked"
	bodies := []struct{ name, contentType, body, framing string }{
		{"a form", formType, "username=victim&password=x", ""},
		{"a chunked form", formType, "username=victim&password=x", chunked},
		{"a multipart form", multipartType, twoParts("username", "victim", "password", "x"), ""},
		{"a chunked multipart form", multipartType, twoParts("username", "victim", "password", "x"), chunked},
		{"JSON", jsonType, `{"username":"victim","password":"x"}`, ""},
		{"chunked JSON", jsonType, `{"username":"victim","password":"x"}`, chunked},
	}
	for _, m := range []Middleware{ReadsBody, ReadsPart, ParsesForm} {
		for _, row := range bodies {
			t.Run(fmt.Sprintf("%s: %s", m, row.name), func(t *testing.T) {
				switch {
				case m == ParsesForm && row.contentType == jsonType:
					t.Skip("JSON is no form")
				case m == ReadsPart && row.framing == chunked:
					t.Skip("nothing says how long a chunked body was: limiter and handler read the same rest")
				}
				l := hooktest.Limiter(t, core.Config{Rules: []core.Rule{{
					Name: "user", Limits: []core.Limit{core.PerMinute(2)}, Key: keyfuncs.PostField("username", keyfuncs.Strict(), keyfuncs.RequireValue()),
				}}})
				app := App{Outside: []Middleware{m}, Routes: []Route{{Method: http.MethodPost, Pattern: "/login", Limits: []Limit{{Checker: l}}, Handler: ok}}}
				c := direct(t, a.Serve(t, app))
				var last response
				send := func() response {
					head := "POST /login HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: " + row.contentType + "\r\n"
					if row.framing == chunked {
						return c.exchange(fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", head, row.body[:5], len(row.body)-5, row.body[5:]))
					}
					return c.exchange(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(row.body), row.body))
				}
				got := count(3, func(int) response {
					last = send()
					return last
				})
				if a.KeepsBody && got[400] == 0 {
					want(t, got, 200, 2, 429, 1)
				} else {
					want(t, got, 400, 3)
				}
				if !a.KeepsBody && !strings.Contains(last.body, "was read by a middleware before the limiter") {
					t.Errorf("the client is told %s", last.body)
				}
				if s := hooktest.Count(l); s.Failed != 0 {
					t.Errorf("a failure is counted: %+v", s)
				}
			})
		}
	}
	t.Run("a body that is still whole", func(t *testing.T) {
		c := direct(t, a.Serve(t, byField(t, 2, ok)))
		for _, row := range bodies {
			user := strings.ReplaceAll(row.name, " ", "-")
			body := strings.ReplaceAll(row.body, "victim", user)
			want(t, count(3, func(int) response { return c.do(http.MethodPost, "/login", body, "Content-Type", row.contentType) }), 200, 2, 429, 1)
		}
	})
}
