package file

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"

	"github.com/floodgate-go/floodgate/core"
)

// said is a file and what is said of it: the beginnings of each message and of its hint.
type said struct {
	file string
	want []string
}

// check reads the file and compares what is wrong, and then what is doubted.
func (c said) check(t *testing.T) {
	t.Helper()
	spec, problems := Read([]byte(c.file), Options{User: func(core.Request) string { return "" }, Tier: true})
	got := slices.Concat(problems, spec.Doubts)
	fine := 2*len(got) == len(c.want)
	for i := 0; fine && i < len(got); i++ {
		at := fmt.Sprintf("%d:%d: %s", got[i].Line, got[i].Column, got[i].Text)
		fine = strings.HasPrefix(at, c.want[2*i]) && strings.HasPrefix(got[i].Hint, c.want[2*i+1]) && (c.want[2*i+1] == "") == (got[i].Hint == "")
	}
	if !fine {
		t.Errorf("%s\ngot  %+v\nwant %q", c.file, got, c.want)
	}
}

// A mistake has its place, says what is wrong, and has a hint only if there is something
// better to write.
func TestThePlaceTheWordsAndTheHintOfAMistake(t *testing.T) {
	for _, c := range []said{
		{"policies: [{name: a, wait: 5, limits: 1/s}]", []string{
			"1:28: 5: is not text: want a length of time such as 500ms or 6s", "write a unit behind the number, as in 5s",
		}},
		{"policies: [{name: a, wait: soon, limits: 1/s}]", []string{
			`1:28: "soon": want a length of time such as 500ms or 6s`, "units are ms, s, m, h, d and w; 366 days at",
		}},
		{"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, limits: 1/day UTC}]}", []string{
			"1:57: 1 per day UTC: a synced store does not count by the calendar of a time zone", "write fixed_window aligned in place of the",
		}},
		{"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, limits: 1/d}]}", []string{
			"1:57: 1 per 1d: a synced store counts aligned fixed_window and sliding_window limits", "write aligned behind the limit",
		}},
		{"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, limits: '1/d aligned, 1/h fixed_window aligned'}]}", nil},
		{"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, limits: 1/d token_bucket}]}", []string{
			"1:57: 1 per 1d (token_bucket): a synced store counts aligned fixed_window and", "write aligned behind the limit",
		}},
		{"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, counting: local, limits: 1/d token_bucket}]}", nil},
		{"{store: {memcached: {servers: ['a:1']}}, policies: [{name: a, limits: 1/30d fixed_window}]}", []string{
			"1:53: 1 per 30d (fixed_window): its hits count for 720h, and a store in memcached keeps", "",
		}},
		{"{store: {memcached: {servers: ['a:1']}}, policies: [{name: a, limits: '1/d, 1/15d'}]}", []string{
			"1:53: 1 per 15d: its hits count for 720h, and a store in memcached keeps them for at", "",
		}},
		{"{store: {memcached: {servers: ['a:1']}}, policies: [{name: a, limits: 1/month UTC}]}", []string{
			"1:53: 1 per month UTC: its hits count for 771h, and a store in memcached keeps them for", "write week, or count in Redis",
		}},
		{"{store: {redis: {address: 'a:1'}}, policies: [{name: a, limits: 1/month UTC}]}", nil},
		{"policies: [{name: a, headers: draft-10, limits: 1/s}, {name: b, headers: draft-10, limits: 1/s}, {name: c, headers: x-seconds, limits: 1/s}]", nil},
		{"policies: [{name: a, headers: draft-10, dry-run: true, limits: 1/s}, {name: b, headers: draft-07, limits: 1/s}]", nil},
		{"policies: [{name: a, limits: '1/s,  5/y, 3/q'}]", []string{
			`1:37: window: "y": want a unit such as s, m, h, d, w or month, or a whole number and a`, "a limit is a quota, a slash and a window, as",
			`1:42: window: "q": want a unit such as s, m, h, d, w or month, or a whole number and a`, "a limit is a quota, a slash and a window, as",
		}},
		{`policies: [{name: a, limits: "1/s,5/y"}]`, []string{
			`1:35: window: "y": want a unit such as s, m, h, d, w or month, or a whole number and a`, "a limit is a quota, a slash and a window, as",
		}},
		{"policies:\n- name: a\n  limits: 1/s, 5/y", []string{
			`3:16: window: "y": want a unit such as s, m, h, d, w or month, or a whole number and a`, "a limit is a quota, a slash and a window, as",
		}},
		{"policies:\n- name: a\n  key: ip +\n    foo\n  limits: 1/s", []string{
			`3:13: "ip + foo": unknown name foo`, "known are method, path, route, ip, user,",
		}},
		{"policies:\n- name: a\n  key: \"ip + foo\"\n  limits: 1/s", []string{
			`3:14: "ip + foo": unknown name foo`, "known are method, path, route, ip, user,",
		}},
		{"policies:\n- name: a\n  key: ip + foo\n  limits: 1/s", []string{
			`3:13: "ip + foo": unknown name foo`, "known are method, path, route, ip, user,",
		}},
		{"policies: [{name: a, zzzzzz: 1, limits: 1/s, limits: 2/s}]", []string{
			"1:46: stands twice, in line 1 too", "",
			"1:22: there is no such field", "the fields here are name, match, counting,",
		}},
		{"policies:\n- name: a\n  match:\n  limits: 1/s", []string{
			"3:3: nothing: want a mapping with methods, paths and when", "is anything missing below it?",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: Africa/Nowhere}}]", []string{
			`1:60: zone: "Africa/Nowhere": cannot be loaded: write the name of a time zone such as`, "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: Zzz/Nowhere}}]", []string{
			`1:60: zone: "Zzz/Nowhere": cannot be loaded: write the name of a time zone such as`, "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: '@x'}}]", []string{
			`1:60: "...@x": want a time zone such as Europe/Berlin or UTC`, "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: '[x'}}]", []string{
			`1:60: "[x": want a time zone such as Europe/Berlin or UTC`, "",
		}},
		{"policies: [{name: a, in-flight: 5}]", nil},
		{"policies: [{name: a, limits: {quota: 1, window: 1h, zone: UTC}}]", []string{
			"1:30: Zone: UTC: a window of 1h is not a day, a week or a month, and only these have a", "with zone, write window: day, week or month",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: day, zone: UTC, aligned: true}}]", []string{
			"1:30: Aligned: true: the windows of a limit with a Zone are aligned to its calendar:", "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: 1h, burst: 5}}]", []string{
			"1:30: Burst: 5: only token_bucket has one, not sliding_window", "",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: 1h, algorithm: leaky_bucket}}]", []string{
			`1:64: "leaky_bucket": want sliding_window, fixed_window, bucketed_window, sliding_log or token_bucket`, "did you mean token_bucket?",
		}},
		{"policies: [{name: a, limits: {quota: 1, window: 1h, algorithm: fixed_windw}}]", []string{
			`1:64: "fixed_windw": want sliding_window, fixed_window, bucketed_window, sliding_log or token_bucket`, "did you mean fixed_window?",
		}},
		{"policies: [{name: a, missing: reect, limits: 1/s}]", []string{
			`1:31: "reect": want own-bucket, skip or reject`, "did you mean reject?",
			"1:31: there is no key that could be missing", "without a key all requests share one counter",
		}},
		{"policies: [{name: a, limits: [1/day UTC, 2/day Europe/Berlin, 1/s, 2/s]}]", []string{
			"1:30: 1 per 1s and 2 per 1s count the same: only the smaller can matter", "leave one out",
		}},
	} {
		c.check(t)
	}
}

// What is legal and probably a mistake is noted, and nothing else is.
func TestWhatIsLegalAndProbablyAMistake(t *testing.T) {
	for _, c := range []said{
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s}]`, []string{
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s}, {name: b, key: ip, limits: 1/s}]`, nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s}, {name: b, key: ip, limits: 1/s, dry-run: true}]`, []string{
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s}, {name: b, key: ip, limits: 1/s, match: {when: 'method == "GET"'}}]`, []string{
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {methods: [GET]}}, {name: b, key: ip, limits: 1/s, match: {methods: [GET]}}]`, nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {methods: [GET]}}, {name: b, key: ip, limits: 1/s, match: {methods: [POST]}}]`, []string{
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {methods: [GET]}}, {name: b, key: ip, limits: 1/s}]`, nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {paths: [/a]}}, {name: b, key: ip, limits: 1/s, match: {paths: [/a]}}]`, nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {paths: [/a]}}, {name: b, key: ip, limits: 1/s, match: {paths: [/b]}}]`, []string{
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {paths: [/a]}}, {name: b, key: ip, limits: 1/s}]`, nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s}, {name: b, key: ip, tier: 'header["y"]', tiers: {default: 1/s, t: 2/s}}]`, []string{
			`1:95: "header[\"y\"]": a client writes the header itself, and so chooses its tier`, "have the program say the tier with",
			`1:27: "header[\"x\"]": a client that changes the header gets another counter each time,`, "add a policy with key: ip for the same",
		}},
		{`policies: [{name: a, key: ip, cost: 'len(query["x"])', limits: 1/s}]`, []string{
			`1:37: "len(query[\"x\"])": a client writes the query parameter itself, and so chooses`, "see that the cost cannot be less than what",
		}},
		{"policies: [{name: a, key: ip, cost: 'len(path)', limits: 1/s}]", nil},
		{`policies: [{name: a, key: 'header["x"]', fallback: route, limits: 1/s}, {name: b, key: ip, limits: 1/s}]`, []string{
			`1:27: "header[\"x\"]": all requests without it share one counter`, "write fallback: ip to count them by address,",
			`1:52: "route": the route is known only to policies that are mounted after routing`, "mounted before it, all requests share one",
		}},
		{`policies: [{name: a, key: 'param["x"]', missing: skip, limits: 1/s}, {name: b, key: ip, limits: 1/s}]`, []string{
			`1:27: "param[\"x\"]": the parameters of a route are known only to policies that are`, "mounted before it, the value is empty for",
		}},
		{"policies: [{name: a, wait: 60s, limits: 1/s}]", nil},
		{"{local: {max-waiting-of-key: 10}, policies: [{name: a, limits: 1/s}]}", nil},
		{"policies: [{name: a, key: ip, quotas: {s: 0}, limits: 1/s}]", []string{
			"1:43: 0: denies all requests of the key", "write 1 or more; leave the key out for the limit's own quota",
		}},
		{"policies: [{name: a, key: ip, quotas: {s: 5/s, t: unlimited}, limits: 1/s}]", nil},
		{"policies: [{name: a, only: [10.0.0.0/8], deny: [10.1.0.0/16], limits: 1/s}]", nil},
		{"policies: [{name: a, only: [10.1.0.0/16], deny: [11.0.0.0/8], limits: 1/s}]", nil},
		{"policies: [{name: a, exempt: [11.0.0.0/8], limits: 1/s}]", nil},
	} {
		c.check(t)
	}
}

// readText returns the problems of a file, one a line.
func readText(text string) string {
	_, problems := Read([]byte(text), Options{User: func(core.Request) string { return "" }, Tier: true})
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%d:%d: %s (%s)", p.Line, p.Column, p.Text, p.Hint))
	}
	return strings.Join(lines, "\n")
}

// A bracket without its partner is an error of the file and no failure of the parser.
func TestBracketsWithoutAPartner(t *testing.T) {
	for _, text := range []string{"]", "}", "a: ]", "a: 1\n]", "[a}", "{a]", "[}, a", "{a: [}, b]"} {
		if got := readText(text); got == "" || strings.Contains(got, "the parser fails") {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// A file that aliases make larger than the bound is refused with one message.
func TestTheNumberOfValuesIsBounded(t *testing.T) {
	r := &reader{nodes: maxNodes - 1}
	v := value{node: &ast.BoolNode{BaseNode: &ast.BaseNode{}}}
	if _, ok := r.open(v); !ok || len(r.errs) != 0 {
		t.Errorf("the value that just fits: %v", r.errs)
	}
	for range 3 {
		if _, ok := r.open(v); ok {
			t.Error("a value more than fits is taken")
		}
	}
	if len(r.errs) != 1 {
		t.Errorf("%d messages: %v", len(r.errs), r.errs)
	}
}

// Each field takes the largest and the smallest value that its description names,
// and not the next one.
func TestBoundsOfFields(t *testing.T) {
	numbered := func(n int, part string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(part, i))
		}
		return strings.Join(all, ", ")
	}
	for name, c := range map[string]struct{ file, most, more string }{
		"timeout":           {"{store: {redis: {address: 'a:1', timeout: %s}}, policies: [{name: a, limits: 1/s}]}", "1m", "60001ms"},
		"interval":          {"{store: {synced: {redis: {address: 'a:1'}, interval: %s}}, policies: [{name: a, limits: 1/s aligned}]}", "1h", "3600001ms"},
		"least max-keys":    {"{local: {max-keys: %s}, policies: [{name: a, limits: 1/s}]}", "1", "0"},
		"max-keys":          {"{local: {max-keys: %s}, policies: [{name: a, limits: 1/s}]}", "2147483647", "2147483648"},
		"name":              {"{policies: [{name: %s, limits: 1/s}]}", strings.Repeat("a", maxName), strings.Repeat("a", maxName+1)},
		"name of a counter": {"{policies: [{name: a, tier: method, tiers: {default: 1/s, %s: 1/s}}]}", strings.Repeat("b", maxName-2), strings.Repeat("b", maxName-1)},
		"limits":            {"{policies: [{name: a, limits: [%s]}]}", numbered(core.MaxLimits, "1/1%ds"), numbered(core.MaxLimits+1, "1/1%ds")},
		"limits in text":    {"{policies: [{name: a, limits: '%s'}]}", numbered(core.MaxLimits, "1/1%ds"), numbered(core.MaxLimits+1, "1/1%ds")},
		"tiers":             {"{policies: [{name: a, tier: user, tiers: {default: 1/s, %s}}]}", numbered(maxTiers-1, "t%d: 1/s"), numbered(maxTiers, "t%d: 1/s")},
		"addresses":         {"{store: {redis: {cluster: true, address: [%s]}}, policies: [{name: a, limits: 1/s}]}", numbered(1000, "'a:1%d'"), numbered(1001, "'a:1%d'")},
		"bytes of a cost":   {"{policies: [{name: a, limits: 9/s, cost: \"1%s\"}]}", strings.Repeat(" ", 4095), strings.Repeat(" ", 4096)},
	} {
		if got := readText(fmt.Sprintf(c.file, c.most)); got != "" {
			t.Errorf("%s: %.60s is refused: %s", name, c.most, got)
		}
		if got := readText(fmt.Sprintf(c.file, c.more)); got == "" {
			t.Errorf("%s: %.60s is taken", name, c.more)
		}
	}
	if got := readText("{store: {synced: {redis: {address: 'a:1'}, interval: 1ms}}, policies: [{name: a, limits: 1/s aligned}]}"); got != "" {
		t.Errorf("the shortest interval is refused: %s", got)
	}
}

// A name may have dots. They make nothing deeper.
func TestANameOfManyDots(t *testing.T) {
	tier := strings.Repeat("a.", 25) + "a"
	if got := readText("{policies: [{name: p, tier: user, tiers: {default: 1/s, " + tier + ": {quota: 1, window: 1s}}}]}"); got != "" {
		t.Error(got)
	}
}

func TestCharactersThatYAMLDoesNotAllow(t *testing.T) {
	for text, want := range map[string]int{
		"a\nb\n": 0, "a\tb\r\n": 0, "\ufffd": 0, "ä\n\u0080": 0,
		"\xff": 1, "a\n\xc3": 2, "a\n\n\x00": 3, "\x1f": 1, "\x7f": 1, "\n\xef\xbf": 2,
	} {
		if got := invalidLine([]byte(text)); got != want {
			t.Errorf("%q: line %d, want %d", text, got, want)
		}
	}
	if got := readText("policies: [{name: a, limits: 1/s, key: '\"\ufffd\"'}]"); got != "" {
		t.Errorf("a replacement character that is in the file: %s", got)
	}
}

// A message of the parser is cut if it is too long, and says so.
func TestALongMessageIsCut(t *testing.T) {
	for n, want := range map[int]string{299: "", 300: "", 301: "..."} {
		got := syntax(nil, errors.New(strings.Repeat("x", n)))
		if want := strings.Repeat("x", min(n, 300)) + want; got.Text != want {
			t.Errorf("%d bytes: %q", n, got.Text)
		}
	}
}

// The hint about tabs is given for every line, also for the last one.
func TestATabInTheIndentation(t *testing.T) {
	for _, text := range []string{"policies:\n\t- name: a\n", "policies:\n\t- name: a", "policies:\n- name: a\n\tlimits: 1/s"} {
		if got := readText(text); !strings.Contains(got, "is indented with a tab (YAML wants spaces)") {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// In a mapping in braces, YAML takes the brackets of an expression for a list.
func TestAnExpressionWithoutQuotesHasAHint(t *testing.T) {
	for text, hint := range map[string]bool{
		`policies: [{name: a, key: header["x"], limits: 5/m}]`:           true,
		"policies:\n  - {name: a, fallback:  json[\"x\"], limits: 5/m}":  true,
		"policies:\n  - {name: a, limits: 5/m]":                          false,
		`policies: [{name: a, key: 'header["x"]', limits: {quota: [1}}]`: false,
	} {
		if got := readText(text); !strings.Contains(got, "is no YAML") || strings.Contains(got, `(put an expression with brackets in quotes, as in key: 'header["x"]')`) != hint {
			t.Errorf("%s:\n%s", text, got)
		}
	}
}

// The text of an expression in a block begins in the line after the sign of the block.
func TestAMistakeInABlockIsInItsLine(t *testing.T) {
	for text, line := range map[string]string{
		"policies:\n  - name: a\n    limits: 5/m\n    key: |\n      ip +\n":            "5:",
		"policies:\n  - name: a\n    limits: 5/m\n    key: |\n      ip\n      + + x\n": "6:",
		"policies:\n  - name: a\n    limits: 5/m\n    key: >\n      ip +\n":            "5:",
		"policies:\n  - name: a\n    limits: 5/m\n    key: ip +\n":                     "4:",
	} {
		if got := readText(text); !strings.HasPrefix(got, line) {
			t.Errorf("%s:\n%s", text, got)
		}
	}
}
