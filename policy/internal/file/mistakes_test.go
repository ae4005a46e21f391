package file

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"

	"github.com/floodgate-go/floodgate/core"
)

// What looks like these mistakes and is none is taken.
func TestFilesWithoutAMistake(t *testing.T) {
	for _, text := range []string{
		"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, limits: '1/d aligned, 1/h fixed_window aligned'}]}",
		"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, counting: local, limits: 1/d token_bucket}]}",
		"{store: {redis: {address: 'a:1'}}, policies: [{name: a, limits: 1/month UTC}]}",
		"policies: [{name: a, headers: draft-10, limits: 1/s}, {name: b, headers: draft-10, limits: 1/s}, {name: c, headers: x-seconds, limits: 1/s}]",
		"policies: [{name: a, headers: draft-10, dry-run: true, limits: 1/s}, {name: b, headers: draft-07, limits: 1/s}]",
		"policies: [{name: a, in-flight: 5}]",
	} {
		if got := readText(text); got != "" {
			t.Errorf("%s:\n%s", text, got)
		}
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
