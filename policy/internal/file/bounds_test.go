package file

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"

	"github.com/floodgate-go/floodgate/core"
)

// readText returns the problems of a file, one a line.
func readText(text string) string {
	_, problems := Read([]byte(text), Options{User: func(core.Request) string { return "" }, Tier: true})
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%d:%d: %s (%s)", p.Line, p.Column, p.Text, p.Hint))
	}
	return strings.Join(lines, "\n")
}

// Text is refused before it is parsed if it has more than the largest number of
// something, and not if it has just that number.
func TestBoundsOfText(t *testing.T) {
	for name, c := range map[string]struct {
		text string // %s: a part that is repeated
		part string
		most int
	}{
		"brackets":             {"%s", "[", 10 * maxDepth},
		"braces":               {"%s", "{", 10 * maxDepth},
		"aliases":              {"%s", "*a ", maxNames},
		"fields":               {"%s", "a:\n", maxNodes},
		"fields in JSON":       {"{%s", `"a":1,`, maxNodes},
		"entries of lists":     {"%s", "- a\n", maxNodes},
		"questions":            {"%s", "? a\n", maxNodes},
		"tags":                 {"%s", "!a\n", maxNodes},
		"lists in a line":      {"%s", "- ", 10 * maxDepth},
		"questions in a line":  {"%s", "? ", 10 * maxDepth},
		"tags in a line":       {"%s", "!", 10 * maxDepth},
		"entries before words": {"%s" + strings.Repeat("a", 4*maxDepth), "- ", 10 * maxDepth},
	} {
		if err := bounded(fmt.Appendf(nil, c.text, strings.Repeat(c.part, c.most))); err != nil {
			t.Errorf("%s: %d are refused: %v", name, c.most, err)
		}
		if err := bounded(fmt.Appendf(nil, c.text, strings.Repeat(c.part, c.most+1))); err == nil {
			t.Errorf("%s: %d are taken", name, c.most+1)
		}
	}
}

// Characters that only look like those of a list, a field or an alias are not
// counted.
func TestBoundsOfTextIgnoreWords(t *testing.T) {
	for name, text := range map[string]string{
		"colons in words":       strings.Repeat("a:b ", maxNodes+1),
		"hyphens in words":      strings.Repeat("a-b ", maxNodes+1),
		"short words":           strings.Repeat("a b\n", maxNodes+1),
		"hyphens between":       strings.Repeat("a - ", 10*maxDepth+1) + strings.Repeat("a", 8*maxDepth),
		"half of it is text":    strings.Repeat("- ", 10*maxDepth+1) + strings.Repeat("a", 20*maxDepth+2),
		"stars":                 strings.Repeat("/** * & a*b ", maxNames+1),
		"brackets side by side": strings.Repeat("[] ", 10*maxDepth+1),
		"closing brackets":      strings.Repeat("]", 5) + strings.Repeat("[", 10*maxDepth),
	} {
		if err := bounded([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBoundsOfTokens(t *testing.T) {
	entries := func(n int) string { return "[" + strings.Repeat("a,", n) + "]" }
	fields := func(n int) string { return "{" + strings.Repeat("a,", n) + "}" }
	for name, c := range map[string]struct {
		text string
		fine bool
	}{
		"as many values as possible":   {entries(maxNodes), true},
		"one value more":               {entries(maxNodes + 1), false},
		"as many fields as possible":   {fields(maxFields), true},
		"one field more":               {fields(maxFields + 1), false},
		"brackets that nothing opened": {"a: 1]\n}\n]", true},
		"commas outside of brackets":   {"[a], b, c\n{a}, b,\n", true},
	} {
		if err := boundedTokens(lexer.Tokenize(c.text)); (err == nil) != c.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
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
		"name of a counter": {"{policies: [{name: a, rules: [{name: %s, limits: 1/s}]}]}", strings.Repeat("b", maxName-2), strings.Repeat("b", maxName-1)},
		"limits":            {"{policies: [{name: a, limits: [%s]}]}", numbered(core.MaxLimits, "1/1%ds"), numbered(core.MaxLimits+1, "1/1%ds")},
		"limits in text":    {"{policies: [{name: a, limits: '%s'}]}", numbered(core.MaxLimits, "1/1%ds"), numbered(core.MaxLimits+1, "1/1%ds")},
		"rules":             {"{policies: [{name: a, rules: [%s]}]}", numbered(maxRules, "{name: r%d, limits: 1/s}"), numbered(maxRules+1, "{name: r%d, limits: 1/s}")},
		"tiers":             {"{policies: [{name: a, tier: user, tiers: {default: 1/s, %s}}]}", numbered(maxRules-1, "t%d: 1/s"), numbered(maxRules, "t%d: 1/s")},
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
