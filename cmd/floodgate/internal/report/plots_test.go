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
