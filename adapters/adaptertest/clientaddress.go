package adaptertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// behindProxies keys by the address that the proxy 127.0.0.2 writes in a header.
func behindProxies(header string) core.KeyFunc {
	return keyfuncs.ClientIP(keyfuncs.Behind(header, "127.0.0.2/32"))
}

func clientAddress(t *testing.T, a Adapter) {
	t.Run("the one-liner counts the peer", func(t *testing.T) {
		addr := a.PerIP(t, 5, time.Hour)
		want(t, count(7, func(i int) response {
			return direct(t, addr).get("/", "X-Forwarded-For", fmt.Sprintf("6.6.6.%d", i))
		}), 200, 5, 429, 2)
		want(t, count(1, func(int) response { return proxied(t, addr).get("/") }), 200, 1)
	})

	for _, name := range []string{"X-Forwarded-For", "X-Real-IP", "Forwarded"} {
		t.Run("nobody else is believed: "+name, func(t *testing.T) {
			addr := a.Serve(t, limited(hooktest.ByKey(t, behindProxies(name), 5)))
			c := direct(t, addr)
			want(t, count(8, func(i int) response {
				value := fmt.Sprintf("6.6.6.%d", i)
				if name == "Forwarded" {
					value = "for=" + value
				}
				return c.get("/", name, value)
			}), 200, 5, 429, 3)
		})
	}

	for _, row := range []struct {
		name   string
		header string
		lines  func(i int) []string // names and values
		passed int                  // of 8, at 5 each
	}{
		{"what the client prepends", "X-Forwarded-For", func(i int) []string {
			return []string{"X-Forwarded-For", fmt.Sprintf("6.6.6.%d, 203.0.113.9", i)}
		}, 5},
		{"two lines", "X-Forwarded-For", func(i int) []string {
			return []string{"X-Forwarded-For", fmt.Sprintf("6.6.6.%d", i), "X-Forwarded-For", "203.0.113.9"}
		}, 5},
		{"empty parts", "X-Forwarded-For", func(i int) []string {
			return []string{"X-Forwarded-For", strings.Repeat(",", i) + ", 203.0.113.9 ,\t,"}
		}, 5},
		{"different clients", "X-Forwarded-For", func(i int) []string {
			return []string{"X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i)}
		}, 8},
		{"no header", "X-Forwarded-For", func(int) []string { return nil }, 5},
		{"Forwarded", "Forwarded", func(i int) []string {
			return []string{"Forwarded", []string{"for=203.0.113.9", `For="203.0.113.9:443"`, "for=203.0.113.9;proto=https;by=10.0.0.1", `for="203.0.113.9:_p"`}[i%4]}
		}, 5},
		{"a very long header", "X-Forwarded-For", func(i int) []string {
			return []string{"X-Forwarded-For", fmt.Sprintf("6.6.6.%d", i) + strings.Repeat(",7.7.7.7", 10_000) + ", 203.0.113.9"}
		}, 5},
		{"the other header", "X-Forwarded-For", func(i int) []string {
			return []string{"Forwarded", fmt.Sprintf("for=6.6.6.%d", i)}
		}, 5},
	} {
		t.Run("behind a proxy: "+row.name, func(t *testing.T) {
			addr := a.Serve(t, limited(hooktest.ByKey(t, behindProxies(row.header), 5)))
			c := proxied(t, addr)
			passed := count(8, func(i int) response { return c.get("/", row.lines(i)...) })[http.StatusOK]
			if passed != row.passed {
				t.Errorf("%d of 8 passed, want %d", passed, row.passed)
			}
		})
	}

	for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Real-IP"} {
		t.Run("a trailer is not the proxy's: "+name, func(t *testing.T) {
			addr := a.Serve(t, App{Routes: []Route{{
				Method: http.MethodPost, Pattern: "/", Handler: ok, Limits: []Limit{{Checker: hooktest.ByKey(t, behindProxies(name), 3)}},
			}}})
			c := proxied(t, addr)
			passed := count(6, func(i int) response {
				value, forged := "203.0.113.9", fmt.Sprintf("6.6.6.%d", i)
				if name == "Forwarded" {
					value, forged = "for="+value, "for="+forged
				}
				return response{status: c.raw("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n" + name + ": " + value + "\r\n\r\n" +
					"3\r\na=b\r\n0\r\n" + name + ": " + forged + "\r\n\r\n")}
			})
			if a.RejectsTrailers && name != "Forwarded" {
				want(t, passed, 400, 6)
				return
			}
			want(t, passed, 200, 3, 429, 3)
			if got := c.do(http.MethodPost, "/", "", name, map[bool]string{true: "for=203.0.113.9", false: "203.0.113.9"}[name == "Forwarded"]); got.status != http.StatusTooManyRequests {
				t.Errorf("%d for the address that the proxy writes, want %d: another address was counted", got.status, http.StatusTooManyRequests)
			}
		})
	}
}
