package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

// text writes marks as "at:text".
func text(ticks []tick) string {
	var all []string
	for _, t := range ticks {
		all = append(all, fmt.Sprintf("%.6g:%s", t.At, t.Text))
	}
	return strings.Join(all, " ")
}

// Heights are in proportion to the numbers, and the time goes from one side to the other.
func TestThePlotOverTime(t *testing.T) {
	s := replay.Series{Start: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Width: 24 * time.Hour, Points: []replay.Point{{Allowed: 60, Denied: 30}, {Allowed: 10, Denied: 40, DryRunDenied: 20}}}
	p := overTime(s)
	want := []bar{
		{Point: s.Points[0], Title: "2026-11-20 12:00, 24h0m0s: 60 allowed, 30 denied"},
		{Point: s.Points[1], Title: "2026-11-21 12:00, 24h0m0s: 10 allowed, 40 denied, 20 would have been denied by the dry run"},
	}
	if !slices.Equal(p.Bars, want) || p.Scale != "430 -2" {
		t.Errorf("the bars are\n%+v\nwant\n%+v, in the scale %s", p.Bars, want, p.Scale)
	}
	if got := text(p.YAxis); got != "200:0 100:50 0:100" {
		t.Errorf("the numbers: %s", got)
	}
	if got := text(p.XAxis); got != "0:11-20 12:00 215:11-21 00:00 430:11-21 12:00 645:11-22 00:00 860:11-22 12:00" {
		t.Errorf("the times: %s", got)
	}
}

func TestThePlotOfASweep(t *testing.T) {
	p := sweepBars(replay.Sweep{Policy: "a", Requests: 200, Points: []replay.SweepPoint{{Factor: 0.5, Quotas: []int64{5, 10}, Denied: 100}, {Factor: 1, Quotas: []int64{10, 20}, Denied: 40}}})
	want := []bar{
		{Point: replay.Point{Denied: 100}, Title: "5, 10 (× 0.5): 50.00 % denied"},
		{Point: replay.Point{Denied: 40}, Title: "10, 20 (× 1): 20.00 % denied", Own: true},
	}
	if !slices.Equal(p.Bars, want) || text(p.XAxis) != "215:5 645:10" {
		t.Errorf("the bars are\n%+v\nwant\n%+v, named %s", p.Bars, want, text(p.XAxis))
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 5: "5", 999: "999", 1000: "1.000", 12345: "12.345", 123456: "123.456", 1234567: "1.234.567"} {
		if got := strings.ReplaceAll(count(n), "\u202f", "."); got != want {
			t.Errorf("count(%d) is %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]int64{0: 2, 1: 2, 2: 2, 3: 4, 5: 6, 10: 10, 11: 20, 21: 40, 99: 100, 101: 200, 4_000_001: 6_000_000} {
		if got := evenTop(n); got != want {
			t.Errorf("evenTop(%d) is %d, want %d", n, got, want)
		}
	}
}

// What is of no number is not written.
func TestNotes(t *testing.T) {
	all := func(f func(r *replay.Report)) string {
		r := &replay.Report{File: "f"}
		f(r)
		return strings.Join(Notes(r), "; ")
	}
	for want, change := range map[string]func(r *replay.Report){
		"":                                      func(*replay.Report) {},
		"left out: 1 line that cannot be read":  func(r *replay.Report) { r.Malformed = 1 },
		"left out: 2 lines that cannot be read": func(r *replay.Report) { r.Malformed = 2 },
		"out of order: 1 request, by at most 1s; decided at the time of the newest request before":                func(r *replay.Report) { r.OutOfOrder, r.LongestBack = 1, time.Second },
		"the log has times in whole seconds: requests of the same second are decided at the same instant":         func(r *replay.Report) { r.WholeSeconds = true },
		"nobody waits: requests that would have waited for their turn count as denied (policies with wait: c, d)": func(r *replay.Report) { r.Waits = []string{"c", "d"} },
		"there are too many keys or clients: the lists lack 1 request of those that came late":                    func(r *replay.Report) { r.KeysMissed = 1 },
		"there are too many keys or clients: the lists lack 3 requests of those that came late":                   func(r *replay.Report) { r.KeysMissed, r.Clients.Missed = 2, 3 },
		"the policies read what the log does not have: body; requests are decided as if they did not have it":     func(r *replay.Report) { r.Missing = []string{"body"} },
	} {
		if got := all(change); got != want {
			t.Errorf("says %q, want %q", got, want)
		}
	}
}

func TestTheTextOfNumbersThatAreNone(t *testing.T) {
	write := func(f replay.Report, requests int64) string {
		var b strings.Builder
		f.Logs, f.Lines, f.Requests = []string{"l"}, 2, requests
		if err := Text(&b, &f); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	none := write(replay.Report{File: "f"}, 0)
	if !strings.HasPrefix(none, "l: 2 lines, 0 requests\n\nf: 0 allowed, 0 denied (0.00 %)\n\n") {
		t.Errorf("of nothing:\n%s", none)
	}
	one := write(replay.Report{File: "f", Clients: replay.ClientReport{Clients: 1, Denied: 1, HonestPerMinute: 1, Honest: 1, HonestDenied: 1}}, 1)
	if want := "  clients: 1, denied at least once: 1\n  honest clients (at most 1 request in each minute) that were denied: 1, with 1 denied request\n"; !strings.HasSuffix(one, want) {
		t.Errorf("of one request:\n%s\nwant at its end:\n%s", one, want)
	}
	some := write(replay.Report{File: "f", Allowed: 1, Bad: 1, DryRunDenied: 1, Denied: 1, Keys: []replay.KeyReport{{Policy: "p", Rule: "r", Requests: 2, Denied: 1}}}, 2)
	for _, want := range []string{" from 0001-01-01T00:00:00Z", "f: 1 allowed, 1 denied (50.00 %), 1 of them as bad requests with status 400; the dry run would have denied 1 (50.00 %)\n", "  (none)  p       r     2         1\n"} {
		if !strings.Contains(some, want) {
			t.Errorf("lacks %q:\n%s", want, some)
		}
	}
}

// Of equal minutes the first ones are listed, in the order of their times.
func TestTheWorstPoints(t *testing.T) {
	for want, denied := range map[string][]int64{"[]": {0, 0}, "[0 1 2 3 4]": {1, 1, 1, 1, 1, 1}, "[0 3 4 5 6]": {9, 1, 0, 2, 3, 4, 5}, "[1]": {0, 5, 0}} {
		var s replay.Series
		for _, n := range denied {
			s.Points = append(s.Points, replay.Point{Denied: n})
		}
		if got := fmt.Sprint(worstPoints(s)); got != want {
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
