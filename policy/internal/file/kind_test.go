package file

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// node returns the value that a text in YAML is.
func node(t *testing.T, text string) value {
	t.Helper()
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value{node: file.Docs[0].Body}
}

// quote returns a text as YAML's text in quotes.
func quote(text string) string {
	var b strings.Builder
	for _, c := range text {
		fmt.Fprintf(&b, `\U%08x`, c)
	}
	return `"` + b.String() + `"`
}

// A kind returns false if it has noted a problem, and true if it has not. Lists and
// fields leave out a value for which it returns false.
func TestAKindReturnsWhetherThereIsAProblem(t *testing.T) {
	ok := func(_ any, ok bool) bool { return ok }
	for name, c := range map[string]struct {
		read  func(r *reader, v value) bool
		fine  []string
		wrong []string
	}{
		"limits":  {func(r *reader, v value) bool { return ok(limits().read(r, v)) }, []string{"1/s", "[1/s, 2/m]", "'1/s, 2/m'"}, []string{"x", "[1/s, 2/s]", "[x]", "[]"}},
		"limit":   {func(r *reader, v value) bool { return ok(limit().read(r, v)) }, []string{"1/s", "{quota: 1, window: 1s}"}, []string{"1", "'1/s, x'", "{quota: 1}", "{quota: 1, window: 1s, precision: 2s}"}},
		"tiers":   {func(r *reader, v value) bool { return ok(tiers().read(r, v)) }, []string{"{default: 1/s}", "{default: unlimited, a: 1/s}"}, []string{"{a: 1/s}", "{default: x}", "1"}},
		"headers": {func(r *reader, v value) bool { return ok(headers().read(r, v)) }, []string{"draft-10", "[draft-10, x-seconds]", "off"}, []string{"x", "[draft-10, draft-10]", "[x-seconds, x-milliseconds]"}},
		"secret":  {func(r *reader, v value) bool { return ok(secret().read(r, v)) }, []string{"a", "{env: A}", "{file: a}"}, []string{"[a]", "''", "null"}},
		"list": {func(r *reader, v value) bool {
			return ok(list(whole[int](1, 9), 3, "some numbers", strconv.Itoa).read(r, v))
		}, []string{"[1]", "[1, 2]", "[3, 2, 1]"}, []string{"[1, 1]", "[x]", "[]", "[1, 2, 3, 4]", "1"}},
		"whole": {func(r *reader, v value) bool { return ok(whole[int](3, 7).read(r, v)) }, []string{"3", "7"}, []string{"2", "8", "x", "3.5", "99999999999999999999"}},
		"several": {func(r *reader, v value) bool {
			given := map[string]value{}
			for _, n := range v.node.(*ast.SequenceNode).Values {
				given[n.String()] = v
			}
			return exactlyOne{fields: []string{"a", "b"}, several: "one of a and b"}.holds(r, v, given)
		}, []string{"[a]", "[b]", "[a, c]"}, []string{"[]", "[a, b]", "[c]"}},
		"missing": {func(r *reader, v value) bool {
			given := map[string]value{}
			for _, n := range v.node.(*ast.SequenceNode).Values {
				given[n.String()] = v
			}
			return exactlyOne{fields: []string{"a", "b"}, others: []string{"o"}}.holds(r, v, given)
		}, []string{"[a]", "[b]", "[o]", "[c, b]"}, []string{"[]", "[a, b]", "[c]"}},
	} {
		for i, text := range append(c.fine, c.wrong...) {
			r := &reader{spec: &Spec{}}
			got, want := c.read(r, node(t, text)), i < len(c.fine)
			if got != want || (len(r.errs) == 0) != want {
				t.Errorf("%s: %s: %v, with the problems %v", name, text, got, r.errs)
			}
		}
	}
}

// A text is taken if the pattern of the schema allows it, whatever its characters.
func TestTextIsTakenIfTheSchemaAllowsIt(t *testing.T) {
	for name, c := range map[string]struct {
		kind    kind[string]
		pattern string
	}{
		"name":   {name(), "^[A-Za-z0-9_.-]{1,64}$"},
		"method": {method(), "^[A-Z-]+$"},
		"header": {headerValue("a header's value"), "^[\t -~]+$"},
	} {
		allowed := regexp.MustCompile(c.pattern)
		var texts []string
		for i := range rune(0x250) {
			texts = append(texts, string(i), "A"+string(i), string(i)+"A")
		}
		for n := range 70 {
			texts = append(texts, strings.Repeat("A", n))
		}
		for _, text := range texts {
			r := &reader{spec: &Spec{}}
			if _, ok := c.kind.read(r, node(t, quote(text))); ok != allowed.MatchString(text) {
				t.Errorf("%s: %q: %v, and the schema says %v: %v", name, text, ok, !ok, r.errs)
			}
		}
	}
}
