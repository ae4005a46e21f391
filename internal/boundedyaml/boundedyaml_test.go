package boundedyaml

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/lexer"
)

// Text is refused before it is parsed if it has more than the largest number of
// something, and not if it has just that number.
func TestBoundsOfText(t *testing.T) {
	for name, c := range map[string]struct {
		text string // %s: a part that is repeated
		part string
		most int
	}{
		"brackets":             {"%s", "[", 10 * MaxDepth},
		"braces":               {"%s", "{", 10 * MaxDepth},
		"aliases":              {"%s", "*a ", maxNames},
		"anchors":              {"%s", "&a ", maxNames},
		"fields":               {"%s", "a:\n", MaxNodes},
		"fields on Windows":    {"%s", "a:\r\n", MaxNodes},
		"fields in JSON":       {"{%s", `"a":1,`, MaxNodes},
		"entries of lists":     {"%s", "- a\n", MaxNodes},
		"questions":            {"%s", "? a\n", MaxNodes},
		"tags":                 {"%s", "!a\n", MaxNodes},
		"lists in a line":      {"%s", "- ", 10 * MaxDepth},
		"questions in a line":  {"%s", "? ", 10 * MaxDepth},
		"tags in a line":       {"%s", "!", 10 * MaxDepth},
		"entries before words": {"%s" + strings.Repeat("a", 4*MaxDepth), "- ", 10 * MaxDepth},
	} {
		if err := bounded(fmt.Appendf(nil, c.text, strings.Repeat(c.part, c.most))); err != nil {
			t.Errorf("%s: %d are refused: %v", name, c.most, err)
		}
		if err := bounded(fmt.Appendf(nil, c.text, strings.Repeat(c.part, c.most+1))); err == nil {
			t.Errorf("%s: %d are taken", name, c.most+1)
		}
	}
}

// Characters that only look like those of a list, a field or an alias are not counted.
func TestBoundsOfTextIgnoreWords(t *testing.T) {
	for name, text := range map[string]string{
		"colons in words":       strings.Repeat("a:b ", MaxNodes+1),
		"hyphens in words":      strings.Repeat("a-b a- -b a!b ", MaxNodes+1),
		"short words":           strings.Repeat("a b\n", MaxNodes+1),
		"hyphens between":       strings.Repeat("a - ", 10*MaxDepth+1) + strings.Repeat("a", 8*MaxDepth),
		"half of it is text":    strings.Repeat("- ", 10*MaxDepth+1) + strings.Repeat("a", 20*MaxDepth+2),
		"stars":                 strings.Repeat("/** * & a*b */ ** ", maxNames+1),
		"brackets side by side": strings.Repeat("[] {} ", 10*MaxDepth+1),
		"closing brackets":      strings.Repeat("]", 5) + strings.Repeat("[", 10*MaxDepth),
	} {
		if err := bounded([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBoundsOfTokens(t *testing.T) {
	entries := func(n int) string { return "[" + strings.Repeat("a,", n) + "]" }
	block := func(indent string, n int) string { return strings.Repeat(indent+"b: x\n", n) }
	fields := func(n int) string { return "{" + strings.Repeat("a,", n) + "}" }
	for name, c := range map[string]struct {
		text string
		fine bool
	}{
		"as many values as possible":   {entries(MaxNodes), true},
		"one value more":               {entries(MaxNodes + 1), false},
		"as many fields as possible":   {fields(maxFields), true},
		"one field more":               {fields(maxFields + 1), false},
		"fields of a block":            {block("", maxFields), true},
		"one field more in a block":    {block("", maxFields+1), false},
		"fields of a block in a block": {"a:\n" + block("  ", maxFields) + block("", maxFields-1), true},
		"one field more there":         {"a:\n" + block("  ", maxFields+1), false},
		"one field more behind it":     {"a:\n" + block("  ", 2) + block("", maxFields), false},
		"fields of blocks in a list":   {strings.Repeat("- a: x\n  b: x\n", maxFields), true},
		"fields of blocks in fields":   {strings.Repeat("a:\n  b: x\n", maxFields), true},
		"one field more around blocks": {strings.Repeat("a:\n  b: x\n", maxFields+1), false},
		"fields of several lengths":    {strings.Repeat("a: x\nbb: x\n", maxFields/2) + "ccc: x\n", false},
		"entries of a list":            {"a:\n" + strings.Repeat("- x\n", maxFields+1), true},
		"brackets in a block":          {strings.Repeat("a: {b: x}\n", maxFields), true},
		"one field more of brackets":   {strings.Repeat("a: {b: x}\n", maxFields+1), false},
		"brackets that nothing opened": {"a: 1]\n}\n]", true},
		"one bracket":                  {"]", true},
		"commas outside of brackets":   {"[a], b, c\n{a}, b,\n", true},
	} {
		if err := boundedTokens(lexer.Tokenize(c.text)); (err == nil) != c.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever separates documents, each field is in one of them, or the text is an error.
func TestNoDocumentIsLost(t *testing.T) {
	lines := []string{"---", "--- # comment", "# comment", "...", "", "field"}
	var texts func(text string, fields, more int)
	texts = func(text string, fields, more int) {
		for _, line := range lines {
			text, fields := text+line+"\n", fields
			if line == "field" {
				fields++
				text = strings.TrimSuffix(text, "field\n") + fmt.Sprintf("f%d: x\n", fields)
			}
			if more > 1 {
				texts(text, fields, more-1)
			}
			file, err := Parse([]byte(text))
			for i := 1; i <= fields && err == nil; i++ {
				if !strings.Contains(file.String(), fmt.Sprintf("f%d: x", i)) {
					t.Fatalf("%q loses field %d", text, i)
				}
			}
		}
	}
	texts("", 0, 5)
	for text, want := range map[string]int{"f: x\n---\n# comment\n---\nf: x\n": 2, "---\n---\nf: x\n": 1, "---\na: x\n---\nb: x\n---\nc: x\n": 3} {
		if file, err := Parse([]byte(text)); err != nil || len(file.Docs) != want {
			t.Errorf("%q: %v, %v, want %d documents", text, file, err, want)
		}
	}
}

// A message has the place, and nothing of what the parser quotes, but single characters.
func TestMessage(t *testing.T) {
	for text, want := range map[string]string{
		"a: |hunter2":                    "1:4: is no YAML: invalid header option: ...",
		"a: |hun\"ter\"2 ":               "1:4: is no YAML: invalid header option: ...",
		"hunter2: 1\nhunter2: 2":         "2:1: is no YAML: mapping key ... already defined at [1:1]",
		"a: \"\\q\"":                     "1:6: is no YAML: found unknown escape character 'q'",
		"a: [":                           "1:4: is no YAML: sequence end token ']' not found",
		strings.Repeat("a:\n", 1001):     "0:0: line 1001: a mapping has more than 1000 fields",
		strings.Repeat("- a\n", 100_001): "0:0: has more than 100000 values",
		strings.Repeat("&a ", 10_001):    "0:0: has more than 10000 anchors and aliases",
		strings.Repeat("[", 1000):        "0:0: brackets are nested more than 200 deep",
	} {
		_, err := Parse([]byte(text))
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		message, line, column := Message(err)
		if got := fmt.Sprintf("%d:%d: %s", line, column, message); got != want {
			t.Errorf("%.50q: %s, want %s", text, got, want)
		}
	}
}
