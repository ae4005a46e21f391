package keyfuncs_test

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestOnFallbackIsToldWhyTheKeyIsNotTheClientsAddress(t *testing.T) {
	const proxy = "10.0.0.1:1"
	xff, forwarded := keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"), keyfuncs.Behind("Forwarded", "10.0.0.0/8")
	realIP := keyfuncs.Behind("X-Real-IP", "10.0.0.0/8")
	unix := keyfuncs.Behind("X-Real-IP", keyfuncs.UnixSocket)
	for _, row := range []struct {
		name, remote string
		behind       keyfuncs.ClientIPOption // nil: none
		header       []string
		key, why     string // why "": OnFallback is not called
	}{
		{"the peer", "192.0.2.1:1", nil, nil, "192.0.2.1", ""},
		{"a Unix socket", "@", nil, nil, "unknown", "no IP address"},
		{"a Unix socket, and proxies with addresses", "@", realIP, []string{"X-Real-IP", "203.0.113.9"}, "unknown", "no IP address"},
		{"a Unix socket, and hops", "@", xff, []string{"X-Forwarded-For", "203.0.113.9"}, "unknown", "no IP address"},
		{"a trusted Unix socket", "@", unix, []string{"X-Real-IP", "203.0.113.9"}, "203.0.113.9", ""},
		{"a trusted Unix socket without the header", "@", unix, nil, "unknown", "missing"},
		{"a stranger", "192.0.2.1:1", xff, []string{"X-Forwarded-For", "nonsense"}, "192.0.2.1", ""},
		{"an address", proxy, realIP, []string{"X-Real-IP", "203.0.113.9"}, "203.0.113.9", ""},
		{"no address", proxy, realIP, []string{"X-Real-IP", "nonsense"}, "10.0.0.1", "no address"},
		{"two lines", proxy, realIP, []string{"X-Real-IP", "203.0.113.8", "X-Real-IP", "203.0.113.9"}, "10.0.0.1", "two lines"},
		{"no line", proxy, realIP, nil, "10.0.0.1", "missing"},
		{"hops", proxy, xff, []string{"X-Forwarded-For", "203.0.113.9, 10.0.0.2"}, "203.0.113.9", ""},
		{"no hops", proxy, xff, nil, "10.0.0.1", "missing"},
		{"empty hops", proxy, xff, []string{"X-Forwarded-For", " ,, "}, "10.0.0.1", "missing"},
		{"a hop that is no address", proxy, xff, []string{"X-Forwarded-For", "nonsense, 10.0.0.2"}, "10.0.0.2", "no address"},
		{"a hop of one letter", proxy, xff, []string{"X-Forwarded-For", "x,10.0.0.2"}, "10.0.0.2", "no address"},
		{"the 32nd hop is no address", proxy, xff, []string{"X-Forwarded-For", "nonsense" + strings.Repeat(",10.0.0.2", 31)}, "10.0.0.2", "no address"},
		{"33 hops", proxy, xff, []string{"X-Forwarded-For", "203.0.113.9" + strings.Repeat(",10.0.0.2", 32)}, "10.0.0.2", "32 hops or 4 KiB"},
		{"33 hops, the last of which is no address", proxy, xff, []string{"X-Forwarded-For", "nonsense" + strings.Repeat(",10.0.0.2", 32)}, "10.0.0.2", "no address"},
		{"5 KiB", proxy, xff, []string{"X-Forwarded-For", strings.Repeat(" ", 5<<10) + ",10.0.0.2"}, "10.0.0.2", "32 hops or 4 KiB"},
		{"an element", proxy, forwarded, []string{"Forwarded", "for=203.0.113.9;by=x"}, "203.0.113.9", ""},
		{"an element without a hop", proxy, forwarded, []string{"Forwarded", "by=x"}, "10.0.0.1", "no address"},
		{"an empty element", proxy, forwarded, []string{"Forwarded", ","}, "10.0.0.1", "missing"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var why []string
			r := &request{remote: row.remote, header: headers(row.header...)}
			opts := []keyfuncs.ClientIPOption{keyfuncs.OnFallback(func(of core.Request, err error) {
				if of != r {
					t.Error("told of another request")
				}
				why = append(why, err.Error())
			})}
			if row.behind != nil {
				opts = append(opts, row.behind)
			}
			if got := keyOf(t, keyfuncs.ClientIP(opts...), r); got != row.key {
				t.Errorf("key %q, want %q", got, row.key)
			}
			if got := strings.Join(why, "; "); len(why) > 1 || (got == "") != (row.why == "") || !strings.Contains(got, row.why) {
				t.Errorf("told %q, want %q", got, row.why)
			}
		})
	}
}
