package report_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
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
		File: "limits.yaml", Allowed: 900, Denied: 100, Bad: 4, DryRunDenied: 7, Waits: []string{"api", "slow"},
		Policies: []replay.PolicyReport{{Policy: "api", Denied: 96, DryRunDenied: 1}, {Policy: "planned", DryRun: true, Denied: 2, DryRunDenied: 7}},
		Keys:     []replay.KeyReport{{Policy: "api", Rule: "api.r", Key: text, Requests: 2000, Denied: 95}, {Policy: "slow", Rule: "slow", Requests: 2, Denied: 1}},
		Routes:   []replay.RouteReport{{Route: "GET /" + text, Requests: 200, Denied: 100}},
		Series:   replay.Series{Start: start, Width: time.Minute, Points: []replay.Point{{Allowed: 450, Denied: 90}, {Allowed: 450, Denied: 10, DryRunDenied: 7}, {Allowed: 9}, {Denied: 5}, {Denied: 20}, {Denied: 40}, {Denied: 30}}},
		Clients:  replay.ClientReport{Clients: 5, Denied: 2, HonestPerMinute: 60, Honest: 1, HonestDenied: 3, Missed: 3, Examples: []replay.ClientExample{{Client: text, Requests: 9, Denied: 3, Busiest: 5}}},
		Sweeps: []replay.Sweep{{Policy: "api", Requests: 500, Points: []replay.SweepPoint{
			{Factor: 0.5, Quotas: []int64{5, 6}, Limits: []string{"at most 5", "at most 6"}, Denied: 400}, {Factor: 1, Quotas: []int64{10, 12}, Limits: []string{"at most 10"}, Denied: 100},
		}}},
		Logs: []string{"access.log" + text, "b.log"}, Lines: 1234567, Requests: 1000, Malformed: 1, Samples: []replay.Sample{{Log: "access.log", Line: 5, Text: text, Problem: "has no time"}},
		From: start.In(time.FixedZone("", 7200)), To: start.Add(time.Hour), Missing: []string{"header " + text, "body"},
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

// testdata has the report in each form. The style of the page is left out.
func TestTheFormsOfAReport(t *testing.T) {
	style := regexp.MustCompile(`(?s)<style>.*</style>\n`)
	for form, to := range map[string]func(io.Writer, *replay.Report) error{"txt": report.Text, "json": report.JSON, "html": report.HTML} {
		want, err := os.ReadFile("testdata/report." + form)
		if err != nil {
			t.Fatal(err)
		}
		if got := style.ReplaceAllString(write(t, to, sample("k")), ""); got != string(want) {
			t.Errorf("%s: writes\n%s\nwant\n%s", form, got, want)
		}
	}
}

// No byte of a log gets to a terminal but what can be printed.
func TestTextIsHarmlessInATerminal(t *testing.T) {
	for _, c := range write(t, report.Text, sample(hostile)) {
		if c != '\n' && !unicode.IsPrint(c) {
			t.Errorf("%U is written", c)
		}
	}
	whole, cut := strings.Repeat("é", 120), strings.Repeat("é", 117)+"..."
	if got := []string{report.Plain(whole), report.Plain(whole + "é"), report.Plain(strings.Repeat("é", 1000))}; !slices.Equal(got, []string{whole, cut, cut}) {
		t.Errorf("long texts: %q", got)
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
}

// A report of nothing is one too.
func TestReportsOfNothing(t *testing.T) {
	empty := &replay.Report{
		File: "f", Series: replay.Series{Width: time.Minute, Points: []replay.Point{{}}},
		Sweeps: []replay.Sweep{{Policy: "a", Points: []replay.SweepPoint{{Factor: 1}, {Factor: 2}}}},
	}
	if got, want := write(t, report.Text, &replay.Report{File: "f", Logs: []string{"a"}}), `a: 0 lines, 0 requests

f: 0 allowed, 0 denied (0.00 %)

  clients: 0, denied at least once: 0
  honest clients (at most 0 requests in each minute) that were denied: 0, with 0 denied requests
`; got != want {
		t.Errorf("writes\n%s\nwant\n%s", got, want)
	}
	if notes := report.Notes(&replay.Report{KeysMissed: 1}); len(notes) != 1 || !strings.HasSuffix(notes[0], ", with 1 request") {
		t.Errorf("notes: %q", notes)
	}
	for _, r := range []*replay.Report{{}, empty} {
		for name, to := range map[string]func(io.Writer, *replay.Report) error{"text": report.Text, "json": report.JSON, "html": report.HTML} {
			if got := write(t, to, r); strings.Contains(got, "NaN") || got == "" || name == "text" && strings.Contains(got, "0001") { // no time
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// A key that is printed is read again as it was, and is one word for a shell.
func TestKeysAreReadAsTheyArePrinted(t *testing.T) {
	for key, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "?:2001:db8::/64": "?:2001:db8::/64", "": `""`, `a\b`: `"a\\b"`, "a\nb": `"a\nb"`, "\xff": `"\xff"`, "a b": `"a b"`, "\x7f": `"\x7f"`, "a~": "a~", `"a"`: `"\"a\""`, strings.Repeat("x", 1000): strings.Repeat("x", 1000),
	} {
		if got := report.Key(key); got != want {
			t.Errorf("Key(%q) is %s, want %s", key, got, want)
		}
		if back, err := report.ParseKey(want); err != nil || back != key {
			t.Errorf("ParseKey(%s) is %q, %v, want %q", want, back, err, key)
		}
	}
	if _, err := report.ParseKey(`"a`); err == nil || !strings.HasPrefix(err.Error(), `"a: want a key, or one in double quotes`) {
		t.Errorf("half of a quoted key: %v", err)
	}
}
