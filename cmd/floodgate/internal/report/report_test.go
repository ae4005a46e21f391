package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
)

// hostile is what clients write into logs.
const hostile = "\x1b[2J</code><script>alert(1)</script>\"'`=cmd|' /C calc'!A0\r\n\u202e\x00"

func sample(text string) *replay.Report {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return &replay.Report{
		File: "limits.yaml", Allowed: 900, Denied: 100, DryRunDenied: 7,
		Policies: []replay.PolicyReport{{Policy: "api", Denied: 100}, {Policy: "planned", DryRun: true, DryRunDenied: 7}},
		Keys:     []replay.KeyReport{{Policy: "api", Rule: "api", Key: text, Requests: 200, Denied: 100}, {Policy: "api", Rule: "api", Key: "=1+1", Requests: 2, Denied: 1}},
		Routes:   []replay.RouteReport{{Route: "GET /" + text, Requests: 200, Denied: 100}},
		Series:   replay.Series{Start: start, Width: time.Minute, Points: []replay.Point{{Allowed: 450, Denied: 90}, {Allowed: 450, Denied: 10, DryRunDenied: 7}}},
		Clients:  replay.ClientReport{Clients: 5, Denied: 2, HonestPerMinute: 60, Honest: 1, HonestDenied: 3, Missed: 3, Examples: []replay.ClientExample{{Client: text, Requests: 9, Denied: 3, Busiest: 5}}},
		Sweeps:   []replay.Sweep{{Policy: "api", Requests: 1000, Points: []replay.SweepPoint{{Factor: 0.5, Quotas: []int64{5}, Limits: []string{"at most 5"}, Denied: 300}, {Factor: 1, Quotas: []int64{10}, Limits: []string{"at most 10"}, Denied: 100}}}},
		Logs:     []string{"access.log" + text}, Lines: 1001, Requests: 1000, Malformed: 1, Samples: []replay.Sample{{Log: "access.log", Line: 5, Text: text, Problem: "has no time"}},
		From: start, To: start.Add(time.Hour), Missing: []string{"header " + text},
		OutOfOrder: 1, LongestBack: time.Second, WholeSeconds: true, KeysMissed: 2,
	}
}

func write(t *testing.T, to func(io.Writer, *replay.Report) error, r *replay.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := to(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	const want = `access.logk: 1001 lines, 1000 requests from 2026-11-20T12:00:00Z to 2026-11-20T13:00:00Z
note: left out: 1 line that cannot be read
note: out of order: 1 request, by at most 1s; decided at the time of the newest request before
note: the log has times in whole seconds: requests of the same second are decided at the same instant
note: the policies read a value that the log lacks: header k; requests are decided without it
note: there are too many keys or clients: the lists leave out the last of them, with 3 requests
  access.log:5: has no time: k

limits.yaml: 900 allowed, 100 denied (10.00 %); the dry run would have denied 7 (0.70 %)

  policy             denied  share
  api                100     10.00 %
  planned (dry run)  7       0.70 %

  key   policy  rule  requests  denied
  k     api     api   200       100
  =1+1  api     api   2         1

  route   requests  denied  share
  GET /k  200       100     50.00 %

  time              allowed  denied
  2026-11-20 12:00  450      90
  2026-11-20 12:01  450      10

  clients: 5, denied at least once: 2
  honest clients (at most 60 requests in each minute) that were denied: 1, with 3 denied requests

  honest client  requests  denied  busiest minute
  k              9         3       5

  policy api alone, with quotas  denied  share
  × 0.5 (5)                      300     30.00 %
  × 1 (10)                       100     10.00 %
`
	if got := write(t, report.Text, sample("k")); got != want {
		t.Errorf("writes\n%s\nwant\n%s", got, want)
	}
}

func TestTextHasTheWorstMinutes(t *testing.T) {
	r := sample("k")
	r.Series.Points = nil
	for _, n := range []int64{5, 90, 3, 80, 70, 60, 50, 4, 0} {
		r.Series.Points = append(r.Series.Points, replay.Point{Allowed: 1000 + n, Denied: n})
	}
	got := write(t, report.Text, r)
	for _, n := range []string{"1090", "1080", "1070", "1060", "1050"} {
		if !strings.Contains(got, n) {
			t.Errorf("lacks %s:\n%s", n, got)
		}
	}
	if strings.Contains(got, "1005") || strings.Contains(got, "1000  ") {
		t.Errorf("has others:\n%s", got)
	}
}

// No byte of a log gets to a terminal but what can be printed.
func TestTextIsHarmlessInATerminal(t *testing.T) {
	for _, c := range write(t, report.Text, sample(hostile)) {
		if c != '\n' && !unicode.IsPrint(c) {
			t.Errorf("%U is written", c)
		}
	}
	if got := report.Plain(strings.Repeat("é", 1000)); len([]rune(got)) != 120 {
		t.Errorf("%d characters of a long text", len([]rune(got)))
	}
	if got := report.Lines("a\"b\\\n\x1b[0m"); got != "a\"b\\\n"+`\x1b[0m` {
		t.Errorf("%q", got)
	}
}

// What a terminal would obey is escaped, and reads as it was.
func TestJSONIsHarmlessInATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"\u009b31m": `\u009b31m`, "a\u202eb": `a\u202eb`, "\u2066": `\u2066`, "\x7f": `\u007f`, "\x1b": `\u001b`, "\ufeff": `\ufeff`,
		"\U000e0001": `\udb40\udc01`, "\u00a0": `\u00a0`, "\xff": `\ufffd`, "ä\U0001f600": `\u00e4\ud83d\ude00`,
	} {
		got := write(t, report.JSON, sample(text))
		if !strings.Contains(got, `"`+want+`"`) {
			t.Errorf("%q is not written as %s:\n%.2000s", text, want, got)
		}
		if i := strings.IndexFunc(got, func(c rune) bool { return c != '\n' && !strconv.IsPrint(c) }); i >= 0 {
			t.Errorf("%q: %q is written", text, got[i:i+4])
		}
		var back replay.Report
		if err := json.Unmarshal([]byte(got), &back); err != nil || back.Keys[0].Key != strings.ToValidUTF8(text, "\ufffd") {
			t.Errorf("%q: reads as %+v, %v", text, back, err)
		}
	}
}

func TestHTMLIsByItselfAndHarmless(t *testing.T) {
	got := write(t, report.HTML, sample(hostile))
	if strings.Contains(got, "<script") || strings.Contains(got, "\x1b") || strings.Contains(got, "\u202e") {
		t.Error("what stands in the log gets into the page")
	}
	if outside := regexp.MustCompile(`(src|href|url|@import|ping|action)\s*[=(]`).FindString(got); outside != "" {
		t.Errorf("the page loads something: %s", outside)
	}
	d := xml.NewDecoder(strings.NewReader(got))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	shapes := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			shapes[e.Name.Local]++
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s: %s is %s", e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
	for _, bar := range []string{
		"11-20 12:02", // the last mark of the time
		`scale(430 -0.33`, `<rect class="a" x="1" width=".9" height="450"/><rect class="r" x="1" width=".9" y="450" height="10"/><rect class="s" x="1" width=".9" height="7"/>`,
	} {
		if !strings.Contains(got, bar) {
			t.Errorf("lacks %s", bar)
		}
	}
	if shapes["svg"] != 2 || shapes["rect"] != 9 {
		t.Errorf("the plots: %v", shapes)
	}
}

// A report of nothing is one too.
func TestReportsOfNothing(t *testing.T) {
	empty := &replay.Report{
		File: "f", Series: replay.Series{Width: time.Minute, Points: []replay.Point{{}}},
		Sweeps: []replay.Sweep{{Policy: "a", Points: []replay.SweepPoint{{Factor: 1}, {Factor: 2}}}},
	}
	for _, r := range []*replay.Report{{}, empty} {
		for name, to := range map[string]func(io.Writer, *replay.Report) error{"text": report.Text, "json": report.JSON, "html": report.HTML} {
			if got := write(t, to, r); strings.Contains(got, "NaN") || got == "" {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// A key that is printed is read again as it was, and is one word for a shell.
func TestKeysAreReadAsTheyArePrinted(t *testing.T) {
	for key, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "?:2001:db8::/64": "?:2001:db8::/64", "": `""`, `a\b`: `"a\\b"`, "a\nb": `"a\nb"`, "\xff": `"\xff"`, "a b": `"a b"`, `"a"`: `"\"a\""`, strings.Repeat("x", 1000): strings.Repeat("x", 1000),
	} {
		if got := report.Key(key); got != want {
			t.Errorf("Key(%q) is %s, want %s", key, got, want)
		}
		if back, err := report.ParseKey(want); err != nil || back != key {
			t.Errorf("ParseKey(%s) is %q, %v, want %q", want, back, err, key)
		}
	}
	if _, err := report.ParseKey(`"a`); err == nil {
		t.Error("half of a quoted key is taken")
	}
}

var (
	row = regexp.MustCompile(`(?s)<tr>.*?</tr>|<div class="card(?: \w+)?">.*?</div>|<p class="lead">.*?</p>|<p class="soft">Honest.*?</p>`)
	gap = regexp.MustCompile(`</t[dh]><t[dh][^>]*>|</b>`)
	tag = regexp.MustCompile(`<[^>]*>`)
)

// The page has the numbers of the report in their columns.
func TestTheTablesOfThePage(t *testing.T) {
	r := &replay.Report{
		Requests: 1000, Samples: []replay.Sample{{Log: "access.log", Line: 5, Text: "x", Problem: "has no time"}},
		File: "f", Allowed: 900, Denied: 100, DryRunDenied: 7,
		Policies: []replay.PolicyReport{{Policy: "api", Denied: 100, DryRunDenied: 1}, {Policy: "planned", DryRun: true, Denied: 2, DryRunDenied: 7}},
		Keys:     []replay.KeyReport{{Policy: "api", Rule: "api.r", Key: "k", Requests: 200, Denied: 50}},
		Routes:   []replay.RouteReport{{Route: "GET /", Requests: 400, Denied: 100}},
		Clients:  replay.ClientReport{Clients: 5, Denied: 2, HonestPerMinute: 60, Honest: 1, HonestDenied: 3, Examples: []replay.ClientExample{{Client: "192.0.2.1", Requests: 9, Denied: 3, Busiest: 4}}},
		Sweeps:   []replay.Sweep{{Policy: "api", Requests: 500, Points: []replay.SweepPoint{{Factor: 0.5, Quotas: []int64{5, 6}, Limits: []string{"at most 5", "at most 6"}, Denied: 300}, {Factor: 1, Quotas: []int64{10, 12}, Denied: 50}}}},
	}
	page := write(t, report.HTML, r)
	var got []string
	for _, text := range row.FindAllString(page, -1) {
		got = append(got, html.UnescapeString(tag.ReplaceAllString(gap.ReplaceAllString(text, " | "), "")))
	}
	want := []string{
		"These limits deny 10.00 % |  of the requests. Denied honest clients: 1 | .",
		"Where | Why | Line", "access.log:5 | has no time | x",
		"900 | allowed", "100 | denied, 10.00 %", "7 | would be denied by the dry run, 0.70 %", "1 | honest clients denied, of 5 addresses",
		"Policy | Denied | Share", "api | 100 | 10.00 %", "planned (dry run) | 7 | 0.70 %",
		"Quotas | × | Denied | Share", "5, 6 | 0.5 | 300 | 60.00 %", "10, 12 | 1 | 50 | 10.00 %",
		"Key | Policy | Rule | Requests | Denied", "k | api | api.r | 200 | 50",
		"Route | Requests | Denied | Share", "GET / | 400 | 100 | 25.00 %",
		"Honest: at most 60 requests in each minute.", "Address | Requests | Denied | Busiest minute", "192.0.2.1 | 9 | 3 | 4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the tables:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, part := range []string{`<td title="at most 5; at most 6">5, 6</td>`, `<rect class="r own" x="1" width=".9" y="0" height="50"/>`, `<rect class="r" x="0" width=".9" y="0" height="300"/>`} {
		if strings.Count(page, part) != 1 {
			t.Errorf("the page has %s %d times, want once", part, strings.Count(page, part))
		}
	}
}
