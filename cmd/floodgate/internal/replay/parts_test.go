package replay

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// Each policy is tried with each factor by itself, with counters of its own.
func TestASweepCountsEachQuotaByItself(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s, err := newSweep("f", []byte("policies: [{name: a, limits: [10/h, 4/m name=m]}]"), func() time.Time { return now }, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	for range 20 {
		s.check(&request{missing: map[string]bool{}})
	}
	curve := s.curves()[0]
	if len(s.curves()) != 1 || curve.Policy != "a" || curve.Requests != 20 || len(curve.Points) != len(factors) {
		t.Errorf("%+v", curve)
	}
	for i, p := range curve.Points {
		m := max(1, int64(4*factors[i]+0.5))
		h := max(1, int64(10*factors[i]+0.5))
		if want := max(0, 20-min(m, h)); p.Factor != factors[i] || p.Denied != want || len(p.Quotas) != 2 || p.Quotas[0] != h || p.Quotas[1] != m || len(p.Limits) != 2 {
			t.Errorf("× %g: %+v, want %d denied by %d and %d", factors[i], p, want, h, m)
		}
	}
}

// Nobody waits in a replay: the requests are those of the past.
func TestNobodyWaitsInAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "policies: [{name: a, limits: 5/m fixed_window, wait: 5m}, {name: b, limits: 9/m, wait: 5m, dry-run: true}, {name: c, limits: 9/m}]"
		r, err := New(Config{Name: "f", Text: []byte(text), Sweep: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		r.now = time.Unix(1_800_000_000, 0)
		begun, allowed := time.Now(), 0
		for range 20 {
			if r.set.Check(&request{missing: map[string]bool{}}).Allowed {
				allowed++
			}
			r.sweep.check(&request{missing: map[string]bool{}})
		}
		if allowed != 5 || time.Since(begun) != 0 || !slices.Equal(r.report.Waits, []string{"a"}) {
			t.Errorf("%d allowed after %v, want 5 at once; policies with wait: %q", allowed, time.Since(begun), r.report.Waits)
		}
	})
}
