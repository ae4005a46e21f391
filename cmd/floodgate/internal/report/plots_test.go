package report

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

// text writes marks as "at:text".
func text(ticks []Tick) string {
	var all []string
	for _, t := range ticks {
		all = append(all, fmt.Sprintf("%.6g:%s", t.At, t.Text))
	}
	return strings.Join(all, " ")
}

// Heights are in proportion to the numbers, denied stands on allowed, and the time
// goes from one side to the other.
func TestThePlotOverTime(t *testing.T) {
	s := replay.Series{Start: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Width: 24 * time.Hour, Points: []replay.Point{{Allowed: 60, Denied: 30}, {Allowed: 10, Denied: 40, DryRunDenied: 20}}}
	p := overTime(s)
	want := []PlotBar{
		{X: 0, Width: 429.5, AllowedY: 80, AllowedH: 120, DeniedY: 20, DeniedH: 60, DryRunY: 200, DryRunH: 0, Title: "2026-11-20 12:00, 24h0m0s: 60 allowed, 30 denied"},
		{X: 430, Width: 429.5, AllowedY: 180, AllowedH: 20, DeniedY: 100, DeniedH: 80, DryRunY: 160, DryRunH: 40, Title: "2026-11-21 12:00, 24h0m0s: 10 allowed, 40 denied, 20 would have been denied by the dry run"},
	}
	if len(p.Bars) != 2 || p.Bars[0] != want[0] || p.Bars[1] != want[1] {
		t.Errorf("the bars are\n%+v\nwant\n%+v", p.Bars, want)
	}
	if got := text(p.YAxis); got != "200:0 150:25 100:50 50:75 0:100" {
		t.Errorf("the numbers: %s", got)
	}
	if got := text(p.XAxis); got != "0:11-20 12:00 215:11-21 00:00 430:11-21 12:00 645:11-22 00:00 860:11-22 12:00" {
		t.Errorf("the times: %s", got)
	}
	if p := overTime(replay.Series{}); p.Bars != nil || p.XAxis != nil {
		t.Errorf("of nothing: %+v", p)
	}
}

// There are at most so many bars: points that share one are added.
func TestBarsOfManyPoints(t *testing.T) {
	for points, want := range map[int]struct{ bars, each int }{1: {1, 1}, 215: {215, 1}, 216: {108, 2}, 430: {215, 2}, 431: {144, 3}, 4096: {205, 20}} {
		s := replay.Series{Start: time.Unix(1_800_000_000, 0).UTC(), Width: time.Minute}
		for range points {
			s.Points = append(s.Points, replay.Point{Allowed: 1, Denied: 2, DryRunDenied: 3})
		}
		p := overTime(s)
		if len(p.Bars) != want.bars {
			t.Errorf("%d points: %d bars, want %d", points, len(p.Bars), want.bars)
			continue
		}
		last := p.Bars[len(p.Bars)-1]
		if points > want.each {
			from := s.Start.Add(time.Duration(want.each) * time.Minute).Format("2006-01-02 15:04")
			if head := fmt.Sprintf("%s, %v: ", from, time.Duration(want.each)*time.Minute); !strings.HasPrefix(p.Bars[1].Title, head) {
				t.Errorf("%d points: the second bar is %q, want %q", points, p.Bars[1].Title, head)
			}
		}
		if end := last.X + last.Width; end < plotWidth-0.6 || end > plotWidth {
			t.Errorf("%d points: the bars end at %g", points, end)
		}
		top := niceTop(int64(3 * want.each))
		if h := p.Bars[0].AllowedH; h != plotHeight*float64(want.each)/top || p.Bars[0].DeniedH != 2*h || p.Bars[0].DryRunH != 3*h {
			t.Errorf("%d points: the first bar is %+v", points, p.Bars[0])
		}
	}
}

func TestThePlotOfASweep(t *testing.T) {
	p := sweepCurve(replay.Sweep{Policy: "a", Requests: 200, Points: []replay.SweepPoint{
		{Factor: 0.1, Quotas: []int64{1, 2}, Denied: 100}, {Factor: 1, Quotas: []int64{10, 20}, Denied: 20}, {Factor: 10, Quotas: []int64{100, 200}},
	}})
	want := []Dot{
		{X: 0, Y: 0, Title: "1, 2 (× 0.1): 50.00 % denied"},
		{X: 430, Y: 160, Own: true, Title: "10, 20 (× 1): 10.00 % denied"},
		{X: 860, Y: 200, Title: "100, 200 (× 10): 0.00 % denied"},
	}
	for i := range want {
		if p.Dots[i].X = math.Round(p.Dots[i].X*1e6) / 1e6; p.Dots[i] != want[i] {
			t.Errorf("dot %d is %+v, want %+v", i, p.Dots[i], want[i])
		}
	}
	if p.Line != "0.0,0.0 430.0,160.0 860.0,200.0" || text(p.XAxis) != "0:1 430:10 860:100" || text(p.YAxis) != "200:0 % 160:10 % 120:20 % 80:30 % 40:40 % 0:50 %" {
		t.Errorf("%q, %s, %s", p.Line, text(p.XAxis), text(p.YAxis))
	}
	for denied, top := range map[int64]string{0: "1 %", 1: "5 %", 10: "5 %", 11: "10 %", 103: "55 %", 199: "100 %", 200: "100 %"} {
		p := sweepCurve(replay.Sweep{Requests: 200, Points: []replay.SweepPoint{{Factor: 0.35, Denied: denied}, {Factor: 2}}})
		if got := p.YAxis[len(p.YAxis)-1].Text; got != top || p.Dots[0].Title != " (× 0.35): "+Share(denied, 200)+" denied" {
			t.Errorf("%d of 200: the axis ends at %s, want %s; %s", denied, got, top, p.Dots[0].Title)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 5: "5", 999: "999", 1000: "1.000", 12345: "12.345", 123456: "123.456", 1234567: "1.234.567"} {
		if got := strings.ReplaceAll(count(n), "\u202f", "."); got != want {
			t.Errorf("count(%d) is %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]float64{0: 1, 1: 1, 2: 2, 3: 5, 5: 5, 6: 10, 10: 10, 11: 20, 20: 20, 21: 50, 50: 50, 51: 100, 499: 500, 500: 500, 501: 1000, 4_000_001: 5_000_000} {
		if got := niceTop(n); got != want {
			t.Errorf("niceTop(%d) is %g, want %g", n, got, want)
		}
	}
	for top, want := range map[float64]string{1: "0 1", 2: "0 1 2", 4: "0 1 2 3 4", 5: "0 1 2 3 4 5", 10: "0 2.5 5 7.5 10", 20: "0 5 10 15 20", 50: "0 10 20 30 40 50", 500: "0 100 200 300 400 500", 5000: "0 1000 2000 3000 4000 5000", 55: "0 13.75 27.5 41.25 55"} {
		var got []string
		for _, tick := range yTicks(top, func(f float64) string { return fmt.Sprintf("%g", f) }) {
			got = append(got, tick.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the marks up to %g are %v, want %s", top, got, want)
		}
	}
}

// What is of no number is not written.
func TestNotes(t *testing.T) {
	all := func(f func(r *replay.Report)) string {
		r := &replay.Report{Files: []replay.FileReport{{File: "f", KeysHeld: 7}}}
		f(r)
		return strings.Join(Notes(r), "; ")
	}
	for want, change := range map[string]func(r *replay.Report){
		"":                                      func(*replay.Report) {},
		"left out: 1 line that cannot be read":  func(r *replay.Report) { r.Malformed = 1 },
		"left out: 2 lines that cannot be read": func(r *replay.Report) { r.Malformed = 2 },
		"left out: 1 line with a time far from the times of the lines around":                                        func(r *replay.Report) { r.Outliers = 1 },
		"out of order: 1 request, by at most 1s; decided at the time of the newest request before":                   func(r *replay.Report) { r.OutOfOrder, r.LongestBack = 1, time.Second },
		"the log has times in whole seconds: requests of the same second are decided at the same instant":            func(r *replay.Report) { r.WholeSeconds = true },
		"f: more than 7 keys: rare keys were dropped, and counts by key may be up to 1 too low":                      func(r *replay.Report) { r.Files[0].KeysMissed = 1 },
		"f: more than 7 keys: rare keys were dropped, and counts by key may be up to 3 too low":                      func(r *replay.Report) { r.Files[0].KeysMissed, r.Files[0].Clients.Missed = 2, 3 },
		"f: more than 7 keys: rare keys were dropped, and counts by key may be up to 4 too low":                      func(r *replay.Report) { r.Files[0].Clients.Missed = 4 },
		"f: nobody waits: requests that would have waited for their turn count as denied (policies with wait: c, d)": func(r *replay.Report) { r.Files[0].Waits = []string{"c", "d"} },
		"the policies read what the log does not have: body; requests are decided as if they did not have it":        func(r *replay.Report) { r.Missing = []string{"body"} },
	} {
		if got := all(change); got != want {
			t.Errorf("says %q, want %q", got, want)
		}
	}
}

func TestTheTextOfNumbersThatAreNone(t *testing.T) {
	write := func(f replay.FileReport, requests int64) string {
		var b strings.Builder
		if err := Text(&b, &replay.Report{Logs: []string{"l"}, Lines: 2, Requests: requests, Files: []replay.FileReport{f}}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	none := write(replay.FileReport{File: "f"}, 0)
	if !strings.HasPrefix(none, "l: 2 lines, 0 requests\n\nf: 0 allowed, 0 denied (0.00 %)\n\n") {
		t.Errorf("of nothing:\n%s", none)
	}
	one := write(replay.FileReport{File: "f", Clients: replay.ClientReport{Clients: 1, Denied: 1, HonestPerMinute: 1, Honest: 1, HonestDenied: 1}}, 1)
	if want := "  clients: 1, denied at least once: 1\n  honest clients (at most 1 request in each minute) that were denied: 1, with 1 denied request\n"; !strings.HasSuffix(one, want) {
		t.Errorf("of one request:\n%s\nwant at its end:\n%s", one, want)
	}
	some := write(replay.FileReport{File: "f", Allowed: 1, Bad: 1, DryRunDenied: 1, Denied: 1, Keys: []replay.KeyReport{{Policy: "p", Rule: "r", Requests: 2, Denied: 1}}}, 2)
	for _, want := range []string{" from 0001-01-01T00:00:00Z", "f: 1 allowed, 1 denied (50.00 %), 1 of them as bad requests with status 400; the dry run would have denied 1 (50.00 %)\n", "  (none)  p       r     2         1\n"} {
		if !strings.Contains(some, want) {
			t.Errorf("lacks %q:\n%s", want, some)
		}
	}
}

// Of equal minutes the last ones are listed, in the order of their times.
func TestTheWorstPoints(t *testing.T) {
	for want, denied := range map[string][]int64{"[]": {0, 0}, "[1 2 3]": {1, 1, 1, 1}, "[0 3 4]": {9, 1, 2, 3, 4}, "[2 3 4]": {1, 1, 2, 2, 1}, "[1]": {0, 5, 0}} {
		var s replay.Series
		for _, n := range denied {
			s.Points = append(s.Points, replay.Point{Denied: n})
		}
		if got := fmt.Sprint(worstPoints(s, 3)); got != want {
			t.Errorf("of %v: %s, want %s", denied, got, want)
		}
	}
}

// A text of just the longest length is whole.
func TestLongTexts(t *testing.T) {
	for n, want := range map[int]string{119: strings.Repeat("é", 119), 120: strings.Repeat("é", 120), 121: strings.Repeat("é", 117) + "..."} {
		if got := Plain(strings.Repeat("é", n)); got != want {
			t.Errorf("of %d characters: %s", n, got)
		}
	}
	for key, want := range map[string]string{"~": "~", "\x7f": `"\x7f"`, "!": "!", " ": `" "`, "é": `"\u00e9"`} {
		if got := Key(key); got != want {
			t.Errorf("the key %q is %s, want %s", key, got, want)
		}
	}
}
