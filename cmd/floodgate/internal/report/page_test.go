package report_test

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
)

var (
	row = regexp.MustCompile(`(?s)<tr>.*?</tr>|<div class="card(?: \w+)?">.*?</div>|<h3>Honest.*?</h3>`)
	gap = regexp.MustCompile(`</t[dh]><t[dh][^>]*>|</b>`)
	tag = regexp.MustCompile(`<[^>]*>`)
)

// The page has the numbers of the report in their columns.
func TestTheTablesOfThePage(t *testing.T) {
	r := &replay.Report{
		Requests: 1000, Samples: []replay.Sample{{Log: "access.log", Line: 5, Text: "x", Problem: "has no time"}},
		Files: []replay.FileReport{{
			File: "f", Allowed: 900, Denied: 100, DryRunDenied: 7,
			Policies: []replay.PolicyReport{{Policy: "api", Denied: 100, DryRunDenied: 1}, {Policy: "planned", DryRun: true, Denied: 2, DryRunDenied: 7}},
			Keys:     []replay.KeyReport{{Policy: "api", Rule: "api.r", Key: "k", Requests: 200, Denied: 50}},
			Routes:   []replay.RouteReport{{Route: "GET /", Requests: 400, Denied: 100}},
			Clients:  replay.ClientReport{Clients: 5, Denied: 2, HonestPerMinute: 60, Honest: 1, HonestDenied: 3, Examples: []replay.ClientExample{{Client: "192.0.2.1", Requests: 9, Denied: 3, Busiest: 4}}},
			Sweeps:   []replay.Sweep{{Policy: "api", Requests: 500, Points: []replay.SweepPoint{{Factor: 0.5, Quotas: []int64{5, 6}, Limits: []string{"at most 5", "at most 6"}, Denied: 300}, {Factor: 1, Quotas: []int64{10, 12}, Denied: 50}}}},
		}},
	}
	page := write(t, report.HTML, r)
	var got []string
	for _, text := range row.FindAllString(page, -1) {
		got = append(got, html.UnescapeString(tag.ReplaceAllString(gap.ReplaceAllString(text, " | "), "")))
	}
	want := []string{
		"Where | Why | Line", "access.log:5 | has no time | x",
		"900 | allowed", "100 | denied, 10.00 %", "7 | would be denied by the dry run, 0.70 %", "1 | honest clients denied, of 5 addresses",
		"Policy | Denied | Share", "api | 100 | 10.00 %", "planned (dry run) | 7 | 0.70 %",
		"Quotas | × | Denied | Share", "5, 6 | 0.5 | 300 | 60.00 %", "10, 12 | 1 | 50 | 10.00 %",
		"Key | Policy | Rule | Requests | Denied", "k | api | api.r | 200 | 50",
		"Route | Requests | Denied | Share", "GET / | 400 | 100 | 25.00 %",
		"Honest clients that were denied at most 60 requests in each minute", "Address | Requests | Denied | Busiest minute", "192.0.2.1 | 9 | 3 | 4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the tables:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, part := range []string{`<td title="at most 5; at most 6">5, 6</td>`, `<circle class="dot own" cx="860.0"`, `<circle class="dot" cx="0.0"`} {
		if strings.Count(page, part) != 1 {
			t.Errorf("the page has %s %d times, want once", part, strings.Count(page, part))
		}
	}
}
