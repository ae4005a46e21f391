package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
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

// Points are a minute wide until there are too many; then each is twice as wide and
// has what both had.
func TestASeriesGetsWiderPoints(t *testing.T) {
	var s Series
	start := time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC)
	for i := range maxPoints {
		p := s.at(start.Add(time.Duration(i) * time.Minute))
		p.Allowed++
		p.Denied += 2
		p.DryRunDenied += 3
	}
	if len(s.Points) != maxPoints || s.Width != time.Minute || !s.Start.Equal(start.Truncate(time.Minute)) {
		t.Fatalf("%d points of %v from %v", len(s.Points), s.Width, s.Start)
	}
	s.at(start.Add(maxPoints*time.Minute)).Allowed++ // one too many
	if len(s.Points) != maxPoints/2+1 || s.Width != 2*time.Minute || s.Points[maxPoints/2] != (Point{Allowed: 1}) {
		t.Fatalf("%d points of %v", len(s.Points), s.Width)
	}
	for i, p := range s.Points[:maxPoints/2] {
		if p != (Point{Allowed: 2, Denied: 4, DryRunDenied: 6}) {
			t.Fatalf("point %d is %+v", i, p)
		}
	}
	s.at(start.Add(-time.Hour)).Denied++ // before the first
	if s.Points[0].Denied != 5 {
		t.Errorf("the first point is %+v", s.Points[0])
	}
	s.at(start.Add(100 * maxPoints * time.Minute)).Denied = 9 // several times too far
	if s.Width != 128*time.Minute || len(s.Points) > maxPoints || s.Points[len(s.Points)-1].Denied != 9 {
		t.Errorf("%d points of %v", len(s.Points), s.Width)
	}
	for _, n := range []int{3, 4} {
		few := Series{Width: time.Minute, Points: make([]Point, n)}
		few.Points[n-1].Allowed = 5
		if few.halve(); len(few.Points) != 2 || few.Points[1].Allowed != 5 {
			t.Errorf("of %d points: %+v", n, few.Points)
		}
	}
}

// A tally holds the first keys, counts how often others come, and lists the largest
// first, the first in the alphabet of equals, and none that has nothing.
func TestTally(t *testing.T) {
	tally := newTally[int64](4)
	for _, key := range strings.Split("a b d b e c d b c d", " ") {
		*tally.at(key)++
	}
	tally.at("a")
	if tally.missed != 2 || len(tally.values) != 4 {
		t.Errorf("missed %d, holds %d", tally.missed, len(tally.values))
	}
	own := func(n *int64) int64 { return *n }
	if got := tally.top(own); !slices.Equal(got, []string{"b", "d", "a", "e"}) {
		t.Errorf("the top are %q", got)
	}
	*tally.at("a") = 0
	if got := tally.top(own); !slices.Equal(got, []string{"b", "d", "e"}) {
		t.Errorf("the top are %q", got)
	}
	many := newTally[int64](100)
	for i := range 50 {
		*many.at(fmt.Sprint(i))++
	}
	if got := many.top(own); len(got) != listed {
		t.Errorf("lists %d", len(got))
	}
}

func TestScaledQuotas(t *testing.T) {
	for _, c := range []struct {
		quota, burst int64
		algorithm    core.Algorithm
		factor       float64
		want, wantB  int64
	}{
		{10, 0, core.FixedWindow, 0.5, 5, 0}, {10, 4, core.TokenBucket, 2, 20, 8}, {0, 0, core.FixedWindow, 10, 0, 0}, {1, 0, core.FixedWindow, 0.1, 1, 0}, {3, 1, core.TokenBucket, 0.35, 1, 1},
		{5, 0, core.FixedWindow, 0.5, 3, 0}, {5, 0, core.FixedWindow, 0.35, 2, 0}, {7, 0, core.FixedWindow, 1, 7, 0}, {core.MaxQuota, 0, core.FixedWindow, 10, core.MaxQuota, 0},
		{core.MaxQuota / 2, 0, core.FixedWindow, 2, core.MaxQuota - 1, 0}, {core.MaxLogQuota, 0, core.SlidingLog, 1.5, core.MaxLogQuota, 0}, {core.MaxLogQuota, 0, core.FixedWindow, 2, 2 * core.MaxLogQuota, 0},
	} {
		s := &scaled{factor: c.factor}
		if l := s.limits([]core.Limit{{Quota: c.quota, Burst: c.burst, Algorithm: c.algorithm}})[0]; l.Quota != c.want || l.Burst != c.wantB {
			t.Errorf("%d and %d of %v by %g: %d and %d, want %d and %d", c.quota, c.burst, c.algorithm, c.factor, l.Quota, l.Burst, c.want, c.wantB)
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

func TestASweepOfABrokenFile(t *testing.T) {
	if s, err := newSweep("f", []byte("policies: []"), time.Now, nil); err == nil {
		t.Error("it is taken", s.close())
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

// The quotas of single keys are multiplied as those of limits are.
func TestASweepOfQuotasOfKeys(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var user string
	s, err := newSweep("f", []byte("policies: [{name: a, key: user, missing: reject, limits: [10/h token_bucket burst=5, 4/m], quotas: {ann: '8/m, 20/h', bob: unlimited}}]"), func() time.Time { return now },
		[]policy.Option{policy.WithUser(func(core.Request) string { return user })})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	times := func(n, f float64) int64 { return max(1, int64(n*f+0.5)) }
	want := make([]int64, len(factors))
	for _, user = range []string{"ann", "bob", "eve"} {
		for range 20 {
			s.check(&request{missing: map[string]bool{}})
		}
		for i, f := range factors {
			switch user {
			case "ann": // the burst is in proportion to the quota
				burst := times(5, f) * times(20, f) / times(10, f)
				want[i] += max(0, 20-min(burst, times(8, f)))
			case "eve":
				want[i] += max(0, 20-min(times(5, f), times(4, f)))
			}
		}
	}
	for i, p := range s.curves()[0].Points {
		if p.Denied != want[i] {
			t.Errorf("× %g: %d denied, want %d", factors[i], p.Denied, want[i])
		}
	}
}
