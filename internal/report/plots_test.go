package report

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/internal/replay"
)

// text writes marks as "at:text".
func text(ticks []Tick) string {
	var all []string
	for _, t := range ticks {
		all = append(all, fmt.Sprintf("%.6g:%s", t.At, t.Text))
	}
	return strings.Join(all, " ")
}

// Heights are in proportion to the numbers, refused stands on admitted, and the time
// goes from one side to the other.
func TestThePlotOverTime(t *testing.T) {
	s := replay.Series{Start: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Width: 24 * time.Hour, Points: []replay.Point{{Admitted: 60, Refused: 30}, {Admitted: 10, Refused: 40, Rehearsed: 20}}}
	p := overTime(s)
	want := []PlotBar{
		{X: 0, Width: 429.5, AdmittedY: 80, AdmittedH: 120, RefusedY: 20, RefusedH: 60, RehearsedY: 200, RehearsedH: 0, Title: "2026-11-20 12:00, 24h0m0s: 60 admitted, 30 refused"},
		{X: 430, Width: 429.5, AdmittedY: 180, AdmittedH: 20, RefusedY: 100, RefusedH: 80, RehearsedY: 160, RehearsedH: 40, Title: "2026-11-21 12:00, 24h0m0s: 10 admitted, 40 refused, 20 would have been by shadow policies"},
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
			s.Points = append(s.Points, replay.Point{Admitted: 1, Refused: 2, Rehearsed: 3})
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
		if h := p.Bars[0].AdmittedH; h != plotHeight*float64(want.each)/top || p.Bars[0].RefusedH != 2*h || p.Bars[0].RehearsedH != 3*h {
			t.Errorf("%d points: the first bar is %+v", points, p.Bars[0])
		}
	}
}

func TestThePlotOfKeys(t *testing.T) {
	p := keyBars([]replay.Bar{{From: 1, To: 1, Keys: 50, Requests: 50}, {From: 2, To: 3}, {From: 4, To: 7, Keys: 25, Requests: 100, Refused: 25}, {From: 1024, To: 2047, Keys: 1, Requests: 2000, Refused: 2000}})
	want := []PlotBar{
		{X: 0, Width: 214.5, AdmittedY: 0, AdmittedH: 200, Title: "1 requests: 50 keys, 0.00 % of their requests refused"},
		{X: 215, Width: 214.5, AdmittedY: 200, RefusedY: 200, Title: "2–3 requests: 0 keys, 0.00 % of their requests refused"},
		{X: 430, Width: 214.5, AdmittedY: 125, AdmittedH: 75, RefusedY: 100, RefusedH: 25, Title: "4–7 requests: 25 keys, 25.00 % of their requests refused"},
		{X: 645, Width: 214.5, AdmittedY: 200, AdmittedH: 0, RefusedY: 196, RefusedH: 4, Title: "1\u202f024–2\u202f047 requests: 1 keys, 100.00 % of their requests refused"},
	}
	for i := range want {
		if p.Bars[i] != want[i] {
			t.Errorf("bar %d is\n%+v\nwant\n%+v", i, p.Bars[i], want[i])
		}
	}
	if got := text(p.YAxis); got != "200:0 160:10 120:20 80:30 40:40 0:50" {
		t.Errorf("the numbers: %s", got)
	}
	if got := text(p.XAxis); got != "107.5:1 322.5:2–4 537.5:4–8 752.5:1k–2k" {
		t.Errorf("the labels: %s", got)
	}
	// One key beside many is seen.
	if p := keyBars([]replay.Bar{{From: 1, To: 1, Keys: 1000, Requests: 1000}, {From: 2, To: 3, Keys: 1, Requests: 2, Refused: 1}}); p.Bars[1].AdmittedH != 1 || p.Bars[1].RefusedH != 1 {
		t.Errorf("one key beside a thousand: %+v", p.Bars[1])
	}
	if p := keyBars([]replay.Bar{{From: 1, To: 1}}); p.Bars != nil {
		t.Errorf("of nothing: %+v", p)
	}
}

func TestThePlotOfASweep(t *testing.T) {
	p := sweepCurve(replay.Sweep{Policy: "a", Requests: 200, Points: []replay.SweepPoint{
		{Factor: 0.1, Quotas: []int64{1, 2}, Refused: 100}, {Factor: 1, Quotas: []int64{10, 20}, Refused: 20}, {Factor: 10, Quotas: []int64{100, 200}},
	}})
	want := []Dot{
		{X: 0, Y: 0, Title: "1, 2 (× 0.1): 50.00 % refused"},
		{X: 430, Y: 160, Own: true, Title: "10, 20 (× 1): 10.00 % refused"},
		{X: 860, Y: 200, Title: "100, 200 (× 10): 0.00 % refused"},
	}
	for i := range want {
		if p.Dots[i].X = math.Round(p.Dots[i].X*1e6) / 1e6; p.Dots[i] != want[i] {
			t.Errorf("dot %d is %+v, want %+v", i, p.Dots[i], want[i])
		}
	}
	if p.Line != "0.0,0.0 430.0,160.0 860.0,200.0" || text(p.XAxis) != "0:1 430:10 860:100" || text(p.YAxis) != "200:0 % 160:10 % 120:20 % 80:30 % 40:40 % 0:50 %" {
		t.Errorf("%q, %s, %s", p.Line, text(p.XAxis), text(p.YAxis))
	}
	for refused, top := range map[int64]string{0: "1 %", 1: "5 %", 10: "5 %", 11: "10 %", 103: "55 %", 199: "100 %", 200: "100 %"} {
		p := sweepCurve(replay.Sweep{Requests: 200, Points: []replay.SweepPoint{{Factor: 0.35, Refused: refused}, {Factor: 2}}})
		if got := p.YAxis[len(p.YAxis)-1].Text; got != top || p.Dots[0].Title != " (× 0.35): "+Share(refused, 200)+" refused" {
			t.Errorf("%d of 200: the axis ends at %s, want %s; %s", refused, got, top, p.Dots[0].Title)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 5: "5", 999: "999", 1000: "1.000", 12345: "12.345", 123456: "123.456", 1234567: "1.234.567"} {
		if got := strings.ReplaceAll(count(n), "\u202f", "."); got != want {
			t.Errorf("count(%d) is %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 1023: "1023", 1024: "1k", 2047: "1k", 2048: "2k", 1<<20 - 1: "1023k", 1 << 20: "1M", 3 << 20: "3M"} {
		if got := short(n); got != want {
			t.Errorf("short(%d) is %s, want %s", n, got, want)
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
		"":                                       func(*replay.Report) {},
		"1 line could not be read and left out":  func(r *replay.Report) { r.Malformed = 1 },
		"2 lines could not be read and left out": func(r *replay.Report) { r.Malformed = 2 },
		"1 line left out: the time is far from those of the lines around":                                 func(r *replay.Report) { r.Outliers = 1 },
		"1 request older than one before, by 1s at most: decided at the time of the newest":               func(r *replay.Report) { r.OutOfOrder, r.LongestBack = 1, time.Second },
		"the log has whole seconds: requests of one second are decided at one moment":                     func(r *replay.Report) { r.WholeSeconds = true },
		"f: more than 7 keys: rare ones are forgotten, and counts by key may be too small by 1":           func(r *replay.Report) { r.Files[0].KeysMissed = 1 },
		"f: more than 7 keys: rare ones are forgotten, and counts by key may be too small by 3":           func(r *replay.Report) { r.Files[0].KeysMissed, r.Files[0].Clients.Missed = 2, 3 },
		"f: more than 7 keys: rare ones are forgotten, and counts by key may be too small by 4":           func(r *replay.Report) { r.Files[0].Clients.Missed = 4 },
		"the policies ask for what the log does not have: body; requests are decided as if they had none": func(r *replay.Report) { r.Missing = []string{"body"} },
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
	if !strings.HasPrefix(none, "l: 2 lines, 0 requests\n\nf: 0 admitted, 0 refused (0.00 %)\n\n") {
		t.Errorf("of nothing:\n%s", none)
	}
	some := write(replay.FileReport{File: "f", Admitted: 1, Bad: 1, Rehearsed: 1, Refused: 1, Keys: []replay.KeyReport{{Policy: "p", Rule: "r", Requests: 2, Refused: 1}}}, 2)
	for _, want := range []string{" from 0001-01-01T00:00:00Z", "f: 1 admitted, 1 refused (50.00 %), 1 of them as bad requests; shadow policies would have refused 1 (50.00 %)\n", "  (none)  p       r     2         1\n"} {
		if !strings.Contains(some, want) {
			t.Errorf("lacks %q:\n%s", want, some)
		}
	}
}

// Of equal minutes the last ones are listed, in the order of their times.
func TestTheWorstPoints(t *testing.T) {
	for want, refused := range map[string][]int64{"[]": {0, 0}, "[1 2 3]": {1, 1, 1, 1}, "[0 3 4]": {9, 1, 2, 3, 4}, "[2 3 4]": {1, 1, 2, 2, 1}, "[1]": {0, 5, 0}} {
		var s replay.Series
		for _, n := range refused {
			s.Points = append(s.Points, replay.Point{Refused: n})
		}
		if got := fmt.Sprint(worstPoints(s, 3)); got != want {
			t.Errorf("of %v: %s, want %s", refused, got, want)
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

// Each number of a table has its place.
func TestTheRowsOfATable(t *testing.T) {
	var b strings.Builder
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	if err := CSV(&b, &replay.Report{Files: []replay.FileReport{{
		File: "f", Admitted: 7, Refused: 3, Rehearsed: 2, Policies: []replay.PolicyReport{{Policy: "p", Refused: 3, Rehearsed: 1}}, Keys: []replay.KeyReport{{Policy: "p", Rule: "r", Key: "k", Requests: 9, Refused: 4}},
		Routes: []replay.RouteReport{{Route: "GET /", Requests: 8, Refused: 5}}, Series: replay.Series{Start: start, Width: time.Hour, Points: []replay.Point{{}, {Admitted: 5, Refused: 2, Rehearsed: 1}}},
		Clients: replay.ClientReport{Examples: []replay.ClientExample{{Client: "c", Requests: 6, Refused: 1}}}, Sweeps: []replay.Sweep{{Policy: "p", Requests: 10, Points: []replay.SweepPoint{{Factor: 0.35, Refused: 6}}}},
	}}}); err != nil {
		t.Fatal(err)
	}
	want := `file,of,policy,rule,name,requests,refused,rehearsed
f,total,,,,10,3,2
f,policy,p,,,,3,1
f,key,p,r,k,9,4,
f,route,,,GET /,8,5,
f,time,,,2026-11-20T12:00:00Z,0,0,0
f,time,,,2026-11-20T13:00:00Z,7,2,1
f,client,,,c,6,1,
f,sweep,p,,0.35,10,6,
`
	if b.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", &b, want)
	}
}
