package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

func TestTheTargetOfALine(t *testing.T) {
	for target, want := range map[string]string{
		"/a?b=c": "/a /a b=c", "/a%41?b": "/aA /a%41 b", "/a%zz": "/a%zz /a%zz ", "/a?b?c": "/a /a b?c", "//h/a": "//h/a //h/a ", "/?": "/ / ",
		"http://h/a%41?b=c": "/aA /a%41 b=c", "http://h": "/ / ", "*": "* * ", "h:443": "h:443 h:443 ", "a/b": "a/b a/b ", "http://%zz/a": "http://%zz/a http://%zz/a ",
	} {
		var r request
		r.set(accesslog.Entry{Target: target})
		if got := r.Path() + " " + r.EscapedPath() + " " + r.RawQuery(); got != want {
			t.Errorf("%s is %q, want %q", target, got, want)
		}
	}
}

func TestTheClientOfALine(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:0 10.0.0.1", "10.0.0.1:5": "10.0.0.1:5 10.0.0.1", "::1": "[::1]:0 ::1", "[::1]:5": "[::1]:5 ::1", "host": "host host", "host:5": "host:5 host", "": " ",
	} {
		r := request{entry: accesslog.Entry{Addr: addr}}
		if got := r.RemoteAddr() + " " + r.client(); got != want {
			t.Errorf("%q is %q, want %q", addr, got, want)
		}
	}
}

func TestTheQueryOfALine(t *testing.T) {
	var r request
	for _, c := range [][3]string{{"/?a=1&b=%41&a=2", "a=1,true b=A,true c=,false"}, {"/?c", "a=,false b=,false c=,true"}, {"/", "a=,false b=,false c=,false"}, {"/?a=%zz&b=1", "a=,false b=1,true c=,false"}} {
		r.set(accesslog.Entry{Target: c[0]})
		var all []string
		for _, name := range []string{"a", "b", "c"} {
			value, found := r.Query(name)
			all = append(all, fmt.Sprintf("%s=%s,%t", name, value, found))
		}
		if got := strings.Join(all, " "); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
}

// What a log does not have is noted once each, and not without end.
func TestWhatALogLacks(t *testing.T) {
	r := request{missing: map[string]bool{}}
	entry, err := accesslog.Parse(`h - - [20/Nov/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "curl"`, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.set(entry)
	if got := r.HeaderValues("User-Agent"); len(got) != 1 || got[0] != "curl" {
		t.Errorf("the agent is %q", got)
	}
	for _, name := range []string{"X-A", "Referer", "access-control-request-method"} {
		if got := r.HeaderValues(name); got != nil {
			t.Errorf("%s is %q", name, got)
		}
	}
	if _, found := r.Cookie("sid"); found {
		t.Error("there is a cookie")
	}
	if body, err := r.Body(5); body != nil || err != nil || r.Value("x") != nil {
		t.Errorf("the body is %q, %v", body, err)
	}
	for _, want := range []string{"header X-A", "header Referer", "cookie sid", "body"} {
		if !r.missing[want] {
			t.Errorf("%q is not noted: %v", want, r.missing)
		}
	}
	if len(r.missing) != 4 {
		t.Errorf("noted: %v", r.missing)
	}
	for i := range 200 {
		r.lacks(fmt.Sprint("header ", i))
		if want := min(i+5, 100); len(r.missing) != want {
			t.Fatalf("%d are noted, want %d", len(r.missing), want)
		}
	}
}

func TestRoutesOfPaths(t *testing.T) {
	segments := func(n int) string { return strings.Repeat("/a", n) }
	for path, want := range map[string]string{
		"/": "/", "/items/5": "/items/{id}", "/items/5/parts/77": "/items/{id}/parts/{id}", "/v1/x": "/v1/x", "/a-b_c": "/a-b_c", "/-1": "/-1", "/1-2": "/1-2",
		"/550e8400-e29b-41d4-a716-446655440000": "/{id}", "/abcdefghijklm123": "/{id}", "/abcdefghijkl123": "/abcdefghijkl123", "/abcdefghijklmn12": "/abcdefghijklmn12", "/a_cdefghijklm123": "/{id}",
		"/abcdefghijklm123.png": "/abcdefghijklm123.png", "/abc.5": "/abc.5", "/٣": "/٣", "/5.": "/5.",
		segments(8): segments(8), segments(9): segments(8) + "/...", segments(20): segments(8) + "/...",
		"/" + strings.Repeat("x", 195): "/" + strings.Repeat("x", 195), "/" + strings.Repeat("x", 196): "/" + strings.Repeat("x", 195) + "...", "/" + strings.Repeat("x", 194) + "é": "/" + strings.Repeat("x", 194) + "...",
	} {
		if got := routeOf("GET", path); got != "GET "+want {
			t.Errorf("%s is %s, want GET %s", path, got, want)
		}
	}
}
