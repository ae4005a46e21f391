package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

func TestTheTargetOfALine(t *testing.T) {
	var r request // of one line after the other
	for target, want := range map[string]string{
		"/a?b=c": "/a /a b=c", "/a+%41?b": "/a+A /a+%41 b", "/a%zz": "/a%zz /a%zz ", "//h/a": "//h/a //h/a ", "/?": "/ / ",
		"http://h/a%41?b=c": "/aA /a%41 b=c", "https://h": "/ / ", "*": "* * ", "h:443": "h:443 h:443 ", "a/b": "a/b a/b ", "http://%zz/a": "http://%zz/a http://%zz/a ",
	} {
		r.set(accesslog.Entry{Target: target})
		if value, found := r.Query("b"); found != strings.HasPrefix(r.RawQuery(), "b") || found && value != strings.TrimPrefix(strings.TrimPrefix(r.RawQuery(), "b"), "=") {
			t.Errorf("%s: b is %q, %t", target, value, found)
		}
		if got := r.Path() + " " + r.EscapedPath() + " " + r.RawQuery(); got != want {
			t.Errorf("%s is %q, want %q", target, got, want)
		}
	}
}

func TestTheClientOfALine(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:0 10.0.0.1", "10.0.0.1:5": "10.0.0.1:5 10.0.0.1", "::1": "[::1]:0 ::1", "[::1]:5": "[::1]:5 ::1", "host": "host host", "host:5": "host:5 host", "": " ",
	} {
		r := request{entry: accesslog.Entry{Addr: addr}, missing: map[string]bool{}}
		if got := r.RemoteAddr() + " " + r.client(); got != want {
			t.Errorf("%q is %q, want %q", addr, got, want)
		}
		if isAddress := strings.ContainsAny(addr, "01"); r.missing["the client's address"] == isAddress {
			t.Errorf("%q: the log lacks %v", addr, r.missing)
		}
	}
}

// The memory of a tally is bounded. Keys that it holds are still counted. A report says how many requests it leaves out, and
// lists twenty keys.
func TestATallyThatIsFull(t *testing.T) {
	r, err := New(Config{Text: []byte("policies: [{name: a, key: ip, limits: 1/h}]"), HonestPerMinute: 9})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // its counters are in memory
	r.keys.max, r.clients.max = 22, 21
	want, got := []string{"10.0.0.125"}, []string(nil)
	for i := range 25 {
		addr := fmt.Sprintf("10.0.0.%d", 125-i)
		for range 2 + (24-i)/24 {
			r.decide(&accesslog.Entry{Addr: addr, Method: "GET", Target: "/"})
		}
	}
	for i := range 19 {
		want = append(want, fmt.Sprintf("10.0.0.%d", 104+i))
	}
	rep := r.Report()
	for _, k := range rep.Keys {
		got = append(got, k.Key)
	}
	if !slices.Equal(got, want) || rep.KeysMissed != 6 || rep.Clients.Missed != 8 || len(rep.Clients.Examples) != 20 {
		t.Errorf("lists %q, want %q; misses %d and %d requests; clients: %+v", got, want, rep.KeysMissed, rep.Clients.Missed, rep.Clients)
	}
	for i := range 200 {
		r.request.lacks(fmt.Sprint(i))
	}
	if len(r.request.missing) != 100 {
		t.Errorf("names %d values that the log lacks, want 100", len(r.request.missing))
	}
}

func TestRoutesOfPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/": "/", "/items/5": "/items/{id}", "/items/5/parts/77": "/items/{id}/parts/{id}", "/v1/x": "/v1/x", "/a-b_c": "/a-b_c", "/-1": "/-1", "/1-2": "/1-2",
		"/550e8400-e29b-41d4-a716-446655440000": "/{id}", "/abcdefghijklm123": "/{id}", "/abcdefghijkl123": "/abcdefghijkl123", "/abcdefghijklmn12": "/abcdefghijklmn12", "/a_cdefghijklm123": "/{id}",
		"/abcdefghijklm123.png": "/abcdefghijklm123.png", "/abc.5": "/abc.5", "/٣": "/٣", "/5.": "/5.",
		"/" + strings.Repeat("x", 195): "/" + strings.Repeat("x", 195), "/" + strings.Repeat("x", 196): "/" + strings.Repeat("x", 195) + "...", "/" + strings.Repeat("x", 194) + "é": "/" + strings.Repeat("x", 194) + "...",
	} {
		if got := routeOf("GET", path); got != "GET "+want {
			t.Errorf("%s is %s, want GET %s", path, got, want)
		}
	}
}
