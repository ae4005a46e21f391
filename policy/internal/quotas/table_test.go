package quotas

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

var twoLimits = [][]core.Limit{{core.PerMinute(100), {Quota: 1000, Window: 24 * time.Hour}}}

// find returns the quotas of a key: of the minute and of the day, -1 for the limit's own.
func find(t *Table, key string) string {
	row := t.Find([]byte(key))
	if row == nil {
		return "none"
	}
	var all []string
	for i := range twoLimits[0] {
		q, found := row.Quota(&twoLimits[0][i])
		switch {
		case !found:
			all = append(all, "own")
		case q == core.Unlimited:
			all = append(all, "unlimited")
		default:
			all = append(all, strconv.FormatInt(q, 10))
		}
	}
	return strings.Join(all, " ")
}

func TestTheLinesOfATable(t *testing.T) {
	table, problems := Parse([]byte("\ufeff# customers of the year\n" +
		"ann: 1000/m, 20000/d\r\n" +
		"\n" +
		"  # a comment behind spaces\n" +
		"bob:unlimited\n" +
		"2001:db8::/64: 7/d # a key with colons\n" +
		"key#with: 9/m\t# and a number sign: 5\n" +
		"\"\": 3/m\n" +
		"\" a \\\"b\\\" # \\x00\" : \"4/m\"\n" +
		"'it''s: # mine': '5/m'\n" +
		"kim lee: unlimited/d, 100/m\n" +
		"-dash: 8/m\n" +
		"\"- two\": 8/m\n" +
		"last: 0"))
	if problems != nil {
		t.Fatal(problems)
	}
	for key, want := range map[string]string{
		"ann": "1000 20000", "bob": "unlimited unlimited", "2001:db8::/64": "own 7", "key#with": "9 own", "": "3 own",
		" a \"b\" # \x00": "4 own", "it's: # mine": "5 own", "kim lee": "100 unlimited", "last": "0 0", "-dash": "8 own", "- two": "8 own", "eve": "none", "Ann": "none",
	} {
		if got := find(table, key); got != want {
			t.Errorf("%q: %s, want %s", key, got, want)
		}
	}
	if table.Len() != 11 || table.Line("ann") != 2 || table.Line("last") != 14 || table.Line("eve") != 0 {
		t.Errorf("%d keys, lines %d and %d", table.Len(), table.Line("ann"), table.Line("last"))
	}
}

func TestTheMistakesOfATable(t *testing.T) {
	for text, want := range map[string]string{
		"a: 5\nann 100/m":                   "2:1: has no colon",
		"a: 5\n: 100/m":                     "2:1: has no key before the colon",
		"ann:":                              "1:5: has no quotas",
		"ann:   # later":                    "1:5: has no quotas",
		"ann: 5\n  bob: 100/m":              "2:1: begins with a space",
		"ann: 100/x":                        `1:6: "100/x": window: "x"`,
		"ann: 100/m, 5/y":                   `1:6: "5/y": window: "y"`,
		"ünn:  1e3":                         `1:7: "1e3": is no quota`,
		"ann: many":                         `1:6: "many": is no quota`,
		"ann: -5":                           `1:6: "-5": is no quota`,
		"ann: -5/m":                         `1:6: "-5/m": `,
		"ann: 9999999999":                   `1:6: "9999999999": is more than 2147483647`,
		"ann: 99999999999999999999":         `1:6: "99999999999999999999": is more than`,
		"ann: 9999999999/m":                 `1:6: "9999999999/m": `,
		"ann: 5/m, 6/60s":                   `1:6: "5/m, 6/60s": the window 1m stands twice`,
		"ann: 5/m token_bucket":             `1:6: "5/m token_bucket": says more`,
		"ann: 5/m name=x":                   `1:6: "5/m name=x": says more`,
		"ann: unlimited/x":                  `1:6: "unlimited/x": window`,
		"ann: 5/m,":                         `1:6: "": is no quota`,
		"ann: 5\nbob: 5\nann: 6":            "3:1: the key stands twice, in line 1 too",
		"\"ann: 5":                          "1:1: begins with a quote",
		"'ann: 5":                           "1:1: begins with a quote",
		`"a\q": 5`:                          "1:1: begins with a quote",
		"\"ann\" 5":                         "1:6: has no colon behind the key",
		"\"ann\"":                           "1:6: has no colon behind the key",
		"- ann: 5/m":                        "1:1: begins with a dash",
		"-\tann: 5/m":                       "1:1: begins with a dash",
		"ann: '5/m":                         "1:6: has quotas that are badly quoted",
		"ann: '5/m' x":                      "1:6: has quotas that are badly quoted",
		"ann: ''":                           "1:6: has no quota",
		"a\x00b: 5":                         "1:2: has a character",
		"ab\xff: 5":                         "1:3: has a character",
		"\xff\xfea":                         "1:1: is text in UTF-16",
		"ann: " + strings.Repeat("5", 1001): "1:6: quotas of 1001 bytes: at most 1000",
		"{\"ann\": 5}":                      `1:9: "5}": is no quota`,
	} {
		table, problems := Parse([]byte(text))
		if len(problems) != 1 || table != nil {
			t.Errorf("%q: %v, %v", text, table, problems)
			continue
		}
		p := problems[0]
		if got := fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Text); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		if p.Hint == "" && !strings.Contains(p.Text, "at most") {
			t.Errorf("%q: no hint", text)
		}
	}
	if _, problems := Parse(make([]byte, MaxBytes+1)); len(problems) != 1 || !strings.Contains(problems[0].Text, "more than 67108864 bytes") {
		t.Error(problems)
	}
	if _, problems := Parse([]byte(strings.Repeat("nothing\n", 5000))); len(problems) != maxProblems {
		t.Errorf("%d problems", len(problems))
	}
	if _, problems := Parse([]byte(strings.Repeat("a: b\n", 5000))); len(problems) != maxProblems {
		t.Errorf("%d problems of rows", len(problems))
	}
	if _, problems := Parse([]byte(strings.Repeat("a: 5\n", 5000))); len(problems) != maxProblems {
		t.Errorf("%d problems of keys", len(problems))
	}
}

// No message has a key in it: it may be an API key.
func TestNoMessageHasAKey(t *testing.T) {
	const secret = "sk_live_secret"
	for _, line := range []string{": 100/x", " 100/m", ": 5\n" + secret + ": 6", ":", "\" 5", "\x00: 5", ": 9", ": 0"} {
		table, problems := Parse([]byte(secret + line))
		more, doubts := table.Check(twoLimits)
		for _, p := range append(append(problems, more...), doubts...) {
			if strings.Contains(p.Text+p.Hint, secret) {
				t.Errorf("%q: %s (%s)", line, p.Text, p.Hint)
			}
		}
		if problems == nil && more == nil {
			t.Errorf("%q is taken", line)
		}
	}
}

func TestATableIsCheckedForARule(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	months := [][]core.Limit{{core.PerDay(100).In(berlin), core.PerMonth(1000).In(berlin)}}
	log := [][]core.Limit{{{Quota: 5, Window: time.Minute, Algorithm: core.SlidingLog}}}
	tiers := [][]core.Limit{{core.PerMinute(1)}, {core.PerMinute(5), core.PerHour(100)}}
	for _, c := range []struct {
		text string
		sets [][]core.Limit
		want string
	}{
		{"a: 5\nb: 5/m", [][]core.Limit{{core.PerMinute(1)}}, ""},
		{"a: unlimited\nb: unlimited/m", twoLimits, ""},
		{"a: 5/m\nb: 6/60s, 7/24h", twoLimits, ""},
		{"a: 5/m\nb: 50/h\nc: unlimited", tiers, ""},
		{"# x\na:  5", twoLimits, `2:5: "5": the rule has 2 limits (write a window behind each quota, as in 100/1m, 1000/24h)`},
		{"a: 5", tiers, `1:4: "5": the rule has 2 limits (write a window behind each quota, as in 5/1m, 100/1h)`},
		{"a: 5/m\nb: 5/s, 6/m\nc: 5/s, 6/m", twoLimits, `2:4: "5/s, 6/m": the rule has no limit with a window of 1s (its limits are 100/1m, 1000/24h)`},
		{"a: 20000000\nb: 1", log, `1:4: 20000000: is more than`},
		{"a: 1000/m, 20000000/m", log, `1:4: "1000/m, 20000000/m": the window 1m stands twice`},
		{"a: 20000000/m", log, `1:4: "20000000/m": 20000000: is more than`},
		{"a: unlimited", log, ""},
		{"a: 5/s, 20000000/m", [][]core.Limit{{core.PerSecond(1), log[0][0]}}, `1:4: "5/s, 20000000/m": 20000000: is more than`},
		{"a: 20000000/s, 5/m", [][]core.Limit{{core.PerSecond(1), log[0][0]}}, ""},
		{"a: 5000/month\nb: 500/d, unlimited/month\nc: 200 per day", months, ""},
		{"a: 5000/month", twoLimits, `1:4: "5000/month": the rule has no limit with a window of`},
		{"a: 5000/h", months, `1:4: "5000/h": the rule has no limit with a window of 1h (its limits are 100/24h, 1000/month)`},
		{"a: 500/d Europe/Berlin", months, `1:4: "500/d Europe/Berlin": says more than`},
		{"a: 500/month Europe/Berlin", months, `1:4: "500/month Europe/Berlin": says more than`},
	} {
		table, problems := Parse([]byte(c.text))
		if problems == nil {
			problems, _ = table.Check(c.sets)
		}
		var got []string
		for _, p := range problems {
			got = append(got, fmt.Sprintf("%d:%d: %s (%s)", p.Line, p.Column, p.Text, p.Hint))
		}
		if (c.want == "") != (got == nil) || len(got) > 1 || got != nil && !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%q: %q, want %s", c.text, got, c.want)
		}
	}
}

func TestWhatIsProbablyAMistake(t *testing.T) {
	table, _ := Parse([]byte("a: 0/m\nb: 5/m\n*: 6/m\nc: 5/m, 0/d\ndefault: 7/m\nd: 0/m\n"))
	_, doubts := table.Check(twoLimits)
	var got []string
	for _, d := range doubts {
		got = append(got, fmt.Sprintf("%d %s", d.Line, d.Text))
	}
	want := `1 "0/m": denies all requests of the key|3 *: is a key as any other, no pattern|4 "5/m, 0/d": denies all requests of the key|5 default: is a key as any other`
	if strings.Join(got, "|") != want {
		t.Errorf("doubts: %q, want %q", got, want)
	}
	table, _ = Parse([]byte("a: 0"))
	if _, doubts = table.Check([][]core.Limit{{core.PerMinute(1)}}); len(doubts) != 1 {
		t.Errorf("a 0: %v", doubts)
	}
}

func TestTheNilTableIsEmpty(t *testing.T) {
	var none *Table
	problems, doubts := none.Check(twoLimits)
	if none.Len() != 0 || none.Find([]byte("a")) != nil || none.Line("a") != 0 || problems != nil || doubts != nil {
		t.Error("it is not")
	}
}

func TestFindingAKeyDoesNotAllocate(t *testing.T) {
	table, _ := Parse([]byte("ann: 5/m\n"))
	key := []byte("ann")
	if n := testing.AllocsPerRun(100, func() {
		if row := table.Find(key); row == nil {
			t.Error("not found")
		} else if q, found := row.Quota(&twoLimits[0][0]); !found || q != 5 {
			t.Error(q, found)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkParse(b *testing.B) {
	var text []byte
	for i := range 100_000 {
		text = fmt.Appendf(text, "customer-%07d: %d/m, %d/d\n", i, i%7+1, 20_000+i%100)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := Parse(text); problems != nil {
			b.Fatal(problems)
		}
	}
}
