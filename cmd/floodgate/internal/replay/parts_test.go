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

// Points are a minute wide until there are too many; then each is twice as wide and
// has what both had.
func TestASeriesGetsWiderPoints(t *testing.T) {
	var s series
	start := time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC)
	for i := range maxPoints {
		p := s.at(start.Add(time.Duration(i) * time.Minute))
		p.Allowed++
		p.Denied += 2
		p.DryRunDenied += 3
	}
	if len(s.points) != maxPoints || s.width != time.Minute || !s.start.Equal(start.Truncate(time.Minute)) {
		t.Fatalf("%d points of %v from %v", len(s.points), s.width, s.start)
	}
	s.at(start.Add(maxPoints*time.Minute)).Allowed++ // one too many
	if len(s.points) != maxPoints/2+1 || s.width != 2*time.Minute {
		t.Fatalf("%d points of %v", len(s.points), s.width)
	}
	for i, p := range s.points[:maxPoints/2] {
		if p != (Point{Allowed: 2, Denied: 4, DryRunDenied: 6}) {
			t.Fatalf("point %d is %+v", i, p)
		}
	}
	if p := s.points[maxPoints/2]; p != (Point{Allowed: 1}) {
		t.Errorf("the last point is %+v", p)
	}
	s.at(start.Add(-time.Hour)).Denied++ // before the first
	if s.points[0].Denied != 5 {
		t.Errorf("the first point is %+v", s.points[0])
	}
	s.at(start.Add(100 * maxPoints * time.Minute)).Denied = 9 // several times too far
	if s.width != 128*time.Minute || len(s.points) > maxPoints || s.points[len(s.points)-1].Denied != 9 {
		t.Errorf("%d points of %v", len(s.points), s.width)
	}
	odd := series{start: start, width: time.Minute, points: []Point{{Allowed: 1}, {Allowed: 2}, {Allowed: 4}}}
	if odd.halve(); len(odd.points) != 2 || odd.points[0].Allowed != 3 || odd.points[1].Allowed != 4 {
		t.Errorf("of three points: %+v", odd.points)
	}
	even := series{start: start, width: time.Minute, points: make([]Point, 4)}
	if even.halve(); len(even.points) != 2 {
		t.Errorf("of four points: %+v", even.points)
	}
}

// A key that comes after others were dropped may be one of them: what they had
// at most is what it may have missed.
func TestAKeyThatComesAfterATrimMayHaveMissedSome(t *testing.T) {
	tally := newTally(2, func(n *int64) int64 { return *n })
	for range 3 {
		*tally.atText("a")++
		*tally.atText("b")++
	}
	*tally.atText("c")++
	if n := tally.total(tally.entries["c"]); n != 4 {
		t.Errorf("c has %d at most, want the one counted and the 3 of the keys that were dropped", n)
	}
	*tally.atText("a")++
	if n := tally.total(tally.entries["a"]); n < 4 {
		t.Errorf("a has %d at most, and came 4 times", n)
	}
}

// However the keys are spread, and also if all have the same number, so many are held
// at most, and no count is too small by more than is said.
func TestATallyHoldsSoManyKeys(t *testing.T) {
	for name, key := range map[string]func(i int) int{
		"all keys once":    func(i int) int { return i },
		"all keys as many": func(i int) int { return i % 1000 },
		"in runs":          func(i int) int { return i / 7 },
		"one among many": func(i int) int {
			if i%3 == 0 {
				return 0
			}
			return i
		},
	} {
		for _, most := range []int{1, 2, 3, 100} {
			tally := newTally(most, func(n *int64) int64 { return *n })
			counts := map[string]int64{}
			for i := range 10_000 {
				text := fmt.Sprint(key(i))
				counts[text]++
				if i%2 == 0 {
					*tally.atText(text)++
				} else {
					*tally.at([]byte(text))++
				}
				if len(tally.entries) > most {
					t.Fatalf("%s: %d keys are held, want %d at most", name, len(tally.entries), most)
				}
			}
			for text, e := range tally.entries {
				if counts[text] > tally.total(e) || counts[text] < e.value || e.missed > tally.dropped {
					t.Errorf("%s: %s is counted %d times, missed %d, and came %d times", name, text, e.value, e.missed, counts[text])
				}
			}
			if tally.dropped == 0 || tally.dropped > 10_000/int64(most)*2+1 {
				t.Errorf("%s, %d keys: %d may be missed", name, most, tally.dropped)
			}
		}
	}
}

// The list has the largest first, the first in the alphabet of equals, and none that
// has nothing.
func TestTheTopOfATally(t *testing.T) {
	tally := newTally(10, func(n *int64) int64 { return *n })
	for key, n := range map[string]int64{"a": 2, "b": 5, "c": 0, "d": 5, "e": 1} {
		*tally.atText(key) = n
	}
	for n, want := range map[int]string{0: "", 1: "b", 2: "b d", 3: "b d a", 4: "b d a e", 9: "b d a e"} {
		var got []string
		for _, e := range tally.top(n, func(n *int64) int64 { return *n }) {
			got = append(got, e.key)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the top %d are %v, want %s", n, got, want)
		}
	}
}

// The keys that came most often are held.
func TestTheRarerHalfIsDropped(t *testing.T) {
	for _, most := range []int{10, 11} {
		tally := newTally(most, func(n *int64) int64 { return *n })
		for i := range most {
			*tally.atText(fmt.Sprint(i)) = int64(i + 1)
		}
		tally.atText("one more")
		for i := range most {
			if held := tally.entries[fmt.Sprint(i)] != nil; held != (i > most/2) {
				t.Errorf("of %d keys, the one that came %d times is held: %t", most, i+1, held)
			}
		}
		if want := int64(most/2 + 1); tally.dropped != want {
			t.Errorf("of %d keys: %d may be missed, want %d", most, tally.dropped, want)
		}
	}
}

// A time is wrong if it is further from its neighbours than the bounds, and right if
// it is just as far.
func TestTheBoundsOfAWrongTime(t *testing.T) {
	base := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	times := func(offsets ...time.Duration) (all []time.Time) {
		for _, o := range offsets {
			all = append(all, base.Add(o))
		}
		return all
	}
	for name, c := range map[string]struct {
		before, after []time.Time
		at            time.Duration // the last one that is right
		wrong         time.Duration // the first one that is not
	}{
		"ahead of both sides":                    {times(0, 0, 0), times(0, 0, 0), tolerance, tolerance + 1},
		"ahead of those behind it":               {times(0), times(time.Hour), time.Hour + tolerance, time.Hour + tolerance + 1},
		"ahead of an older median":               {times(0, 0, 48*time.Hour), times(-time.Hour, -time.Hour), tolerance, tolerance + 1},
		"behind those before it":                 {times(0), times(time.Hour), -24 * time.Hour, -24*time.Hour - 1},
		"behind those after it":                  {times(2 * time.Hour), times(0), -24 * time.Hour, -24*time.Hour - 1},
		"the first line, ahead":                  {nil, times(0, 0), tolerance, tolerance + 1},
		"the first line, behind":                 {nil, times(0, 0), -366 * 24 * time.Hour, -366*24*time.Hour - 1},
		"the last line, ahead":                   {times(0, 0), nil, 366 * 24 * time.Hour, 366*24*time.Hour + 1},
		"the last line, behind":                  {times(0, 0), nil, -24 * time.Hour, -24*time.Hour - 1},
		"the median is the lower of two":         {times(0, 0), times(0, 10*time.Hour), tolerance, tolerance + 1},
		"one late line is not the newest of all": {times(0, 0, time.Minute, 0), times(0, 0), time.Minute + tolerance, time.Minute + tolerance + 1},
	} {
		for at, want := range map[time.Duration]bool{c.at: false, c.wrong: true} {
			w := window{held: []parsed{{entry: accesslog.Entry{Time: base.Add(at)}}}}
			for _, b := range c.before {
				w.taken(b)
			}
			for _, a := range c.after {
				w.held = append(w.held, parsed{entry: accesslog.Entry{Time: a}})
			}
			if got := w.wrong(); got != want {
				t.Errorf("%s: %v is wrong: %t, want %t", name, at, got, want)
			}
		}
	}
	// The year 1, which is the zero time, is no time of a line before the first.
	w := window{held: []parsed{{entry: accesslog.Entry{Time: time.Time{}.Add(time.Second)}}, {entry: accesslog.Entry{Time: base}}}}
	if !w.wrong() {
		t.Error("the first line's time may be in the year 1")
	}
	if (&window{held: w.held[:1]}).wrong() {
		t.Error("a line alone is wrong")
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
	s, err := newSweep(File{"f", []byte("policies: [{name: a, limits: [10/h, 4/m name=m]}]")}, func() time.Time { return now }, nil)
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
	if s, err := newSweep(File{"f", []byte("policies: []")}, time.Now, nil); err == nil {
		t.Error("it is taken", s.close())
	}
}

// Nobody waits in a replay: the requests are those of the past.
func TestNobodyWaitsInAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "policies: [{name: a, limits: 5/m, wait: 1m}, {name: b, limits: 9/m, wait: 1m, dry-run: true}, {name: c, limits: 9/m}]"
		r := &Replay{config: Config{MaxKeys: 10}, now: time.Unix(1_800_000_000, 0)}
		one, err := newRun(File{"f", []byte(text)}, r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = one.close() }()
		s, err := newSweep(File{"f", []byte(text)}, func() time.Time { return r.now }, r.options(func(core.Decision) {}))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.close() }()
		begun, allowed := time.Now(), 0
		for range 20 {
			if one.set.Check(&request{missing: map[string]bool{}}).Allowed {
				allowed++
			}
			s.check(&request{missing: map[string]bool{}})
		}
		if allowed != 5 || time.Since(begun) != 0 || !slices.Equal(one.result.Waits, []string{"a"}) {
			t.Errorf("%d allowed after %v, want 5 at once; policies with wait: %q", allowed, time.Since(begun), one.result.Waits)
		}
	})
}

// The quotas of single keys are multiplied as those of limits are.
func TestASweepOfQuotasOfKeys(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var user string
	s, err := newSweep(File{"f", []byte("policies: [{name: a, key: user, missing: reject, limits: [10/h token_bucket burst=5, 4/m], quotas: {ann: '8/m, 20/h', bob: unlimited}}]")}, func() time.Time { return now },
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
