package file

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/floodgate-go/floodgate/internal/boundedyaml"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// value is a value of the file and the path of its field.
type value struct {
	node ast.Node
	path string
}

// place returns where the value begins.
func (v value) place() Place {
	p := Place{Field: v.path}
	if tk := begin(v.node); tk != nil && tk.Position != nil {
		p.Line, p.Column = tk.Position.Line, max(1, tk.Position.Column)
	}
	return p
}

// reader reads the values of a file and notes the problems.
type reader struct {
	errs    []Problem
	doubts  []Problem // what is legal and probably a mistake
	anchors map[string]ast.Node
	nodes   int
	spec    *Spec // what has been read so far
	options Options
}

// bad notes a problem of a value.
func (r *reader) bad(v value, problem, hint string) {
	r.badAt(v, 0, 0, problem, hint)
}

// doubt notes that a value is legal and probably a mistake.
func (r *reader) doubt(v value, problem, hint string) {
	errs := r.errs
	r.bad(v, problem, hint)
	r.doubts, r.errs = append(r.doubts, r.errs[len(r.errs)-1]), errs
}

// badAt notes a problem at a place so many lines and columns after the beginning of
// a value.
func (r *reader) badAt(v value, lines, columns int, problem, hint string) {
	at := v.place()
	at.Line, at.Column = at.Line+lines, at.Column+columns
	r.errs = append(r.errs, Problem{at, problem, hint})
}

// open returns the value behind an alias or an anchor. It returns false if it has
// noted a problem, which does not quote the value: a password may begin like an
// alias or a tag.
func (r *reader) open(v value) (value, bool) {
	for range boundedyaml.MaxDepth {
		switch n := v.node.(type) {
		case *ast.AnchorNode:
			if r.anchors == nil {
				r.anchors = map[string]ast.Node{}
			}
			r.anchors[n.Name.String()] = n.Value
			v.node = n.Value
		case *ast.AliasNode:
			to, known := r.anchors[n.Value.String()]
			if !known {
				r.bad(v, "an alias (a value that begins with *): there is no anchor of its name before it", "text that begins with * stands in quotes")
				return v, false
			}
			v.node = to
		case *ast.TagNode:
			r.bad(v, "a tag (a value that begins with !): tags are not used in policy files", "leave it out; text that begins with ! stands in quotes")
			return v, false
		default:
			if r.nodes++; r.nodes > maxNodes {
				if r.nodes == maxNodes+1 {
					r.bad(v, fmt.Sprintf("more than %d values", maxNodes), "")
				}
				return v, false
			}
			return v, true
		}
	}
	r.bad(v, "an alias that leads to itself", "")
	return v, false
}

// describe describes a value for messages.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return strconv.Quote(words.Shown(n.Value))
	case *ast.LiteralNode:
		return strconv.Quote(words.Shown(n.Value.Value))
	default:
		return words.Shown(n.String())
	}
}

const emptyHint = "a value that begins with # is a comment in YAML: put it in quotes"

// text reads a text that is not empty.
func (r *reader) text(v value, want string) (string, bool) {
	v, ok := r.open(v)
	if !ok {
		return "", false
	}
	var s string
	switch n := v.node.(type) {
	case *ast.StringNode:
		s = n.Value
	case *ast.LiteralNode:
		s = strings.TrimSuffix(n.Value.Value, "\n")
	case nil, *ast.NullNode:
		r.bad(v, "is empty", "want "+want+"; "+emptyHint)
		return "", false
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		r.bad(v, describe(v.node)+": want "+want, "")
		return "", false
	default:
		hint := "put text that looks like something else in quotes"
		if _, number := v.node.(*ast.IntegerNode); number && strings.Contains(want, "3/6s") {
			hint = fmt.Sprintf("write a slash and a window behind the quota, as in %s/m", describe(v.node))
		} else if number && strings.Contains(want, "6s") {
			hint = fmt.Sprintf("write a unit behind the number, as in %ss", describe(v.node))
		}
		r.bad(v, describe(v.node)+": is not text: want "+want, hint)
		return "", false
	}
	if s == "" {
		r.bad(v, "is empty", "want "+want)
		return "", false
	}
	return s, true
}

// choice reads one of some words.
func (r *reader) choice(v value, allowed ...string) (string, bool) {
	v, ok := r.open(v)
	if !ok {
		return "", false
	}
	want := "want " + strings.Join(allowed[:len(allowed)-1], ", ") + " or " + allowed[len(allowed)-1]
	n, ok := v.node.(*ast.StringNode)
	if ok {
		for _, w := range allowed {
			if n.Value == w {
				return w, true
			}
		}
	}
	hint := words.Nearest(kindText(v.node), allowed)
	if slices.Contains(allowed, algorithms[0].String()) && algorithmHint(kindText(v.node)) != "" {
		hint = algorithmHint(kindText(v.node))
	}
	r.bad(v, describe(v.node)+": "+want, hint)
	return "", false
}

func kindText(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return ""
}

// integer reads a whole number of decimal digits.
func (r *reader) integer(v value, least, most int64) (int64, bool) {
	v, ok := r.open(v)
	if !ok {
		return 0, false
	}
	want := fmt.Sprintf("want a whole number from %d to %d", least, most)
	n, ok := v.node.(*ast.IntegerNode)
	if !ok {
		r.bad(v, describe(v.node)+": "+want, "")
		return 0, false
	}
	i, err := strconv.ParseInt(n.Token.Value, 10, 64)
	if err != nil || i < least || i > most {
		r.bad(v, n.Token.Value+": "+want, "")
		return 0, false
	}
	return i, true
}

func (r *reader) boolean(v value) (is, ok bool) {
	v, ok = r.open(v)
	if !ok {
		return false, false
	}
	n, ok := v.node.(*ast.BoolNode)
	if !ok {
		r.bad(v, describe(v.node)+": want true or false", "")
		return false, false
	}
	return n.Value, true
}

// list reads a list of at least one and at most so many values.
func (r *reader) list(v value, most int, want string) []value {
	v, ok := r.open(v)
	if !ok {
		return nil
	}
	n, ok := v.node.(*ast.SequenceNode)
	if !ok {
		hint := ""
		if isMapping(v) {
			hint = "begin each item of the list with a dash and a space, as in - name: api"
		}
		r.bad(v, describe(v.node)+": want "+want, hint)
		return nil
	}
	if len(n.Values) == 0 {
		if what, plain := strings.CutPrefix(want, "a list of "); plain {
			want = fmt.Sprintf("1 to %d %s", most, what)
		}
		r.bad(v, "the list is empty: want "+want, "")
		return nil
	}
	if len(n.Values) > most {
		r.bad(v, fmt.Sprintf("a list of %d: want %s, 1 to %d", len(n.Values), want, most), "")
		return nil
	}
	values := make([]value, len(n.Values))
	for i, e := range n.Values {
		values[i] = value{e, fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return values
}

// items returns the values of a list; of any other value, the value itself.
func (r *reader) items(v value, most int, want string) []value {
	opened, ok := r.open(v)
	if !ok {
		return nil
	}
	if isList(opened) {
		return r.list(opened, most, want)
	}
	return []value{v}
}

func isList(v value) bool {
	_, is := v.node.(*ast.SequenceNode)
	return is
}

func isMapping(v value) bool {
	switch v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

// quoted returns how many characters a value has before its text.
func quoted(v value) int {
	if tk := begin(v.node); tk != nil && (tk.Type == token.SingleQuoteType || tk.Type == token.DoubleQuoteType) {
		return 1
	}
	return 0
}

func isInteger(v value) bool {
	_, is := v.node.(*ast.IntegerNode)
	return is
}

// MaxBytes is the size of the largest file, in bytes.
const MaxBytes = 1 << 20

// maxNodes is the most values of a file. Those of an alias count each time.
const maxNodes = boundedyaml.MaxNodes

// parse returns the file's only document.
func (r *reader) parse(text []byte) (value, bool) {
	if len(text) > MaxBytes {
		r.errs = append(r.errs, Problem{Place{}, fmt.Sprintf("has more than %d bytes", MaxBytes), "a policy file has at most so many"})
		return value{}, false
	}
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")): // some editors write a byte order mark
		text = text[3:]
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		r.errs = append(r.errs, Problem{Place{Line: 1, Column: 1}, "is text in UTF-16", "save the file as UTF-8"})
		return value{}, false
	}
	if line := invalidLine(text); line > 0 {
		r.errs = append(r.errs, Problem{Place{Line: line, Column: 1}, "is not text in UTF-8", ""})
		return value{}, false
	}
	file, err := boundedyaml.Parse(text, parser.AllowDuplicateMapKey())
	if err != nil {
		r.errs = append(r.errs, syntax(text, err))
		return value{}, false
	}
	var docs []*ast.DocumentNode
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.DirectiveType {
			docs = append(docs, d)
		}
	}
	switch len(docs) {
	case 0:
		r.errs = append(r.errs, Problem{Place{}, "the file is empty", "want a field policies"})
		return value{}, false
	case 1:
	default:
		r.bad(value{node: docs[1].Body}, "a second document", "a policy file has one")
		return value{}, false
	}
	return value{node: docs[0].Body}, true
}

// invalidLine returns the first line that is not UTF-8 or has a character that YAML
// does not allow; 0 if there is none.
func invalidLine(text []byte) int {
	line := 1
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		switch {
		case c == '\n':
			line++
		case c == utf8.RuneError && size == 1, c < ' ' && c != '\t' && c != '\r', c == 0x7f:
			return line
		}
		text = text[size:]
	}
	return 0
}

// unquoted finds an expression that is written without quotes. YAML takes its brackets
// for a list inside of a mapping in braces.
var unquoted = regexp.MustCompile(`:\s*(header|query|cookie|form|json)\[`)

// syntax returns a Problem for the parser's error.
func syntax(text []byte, err error) Problem {
	var e Problem
	e.Text, e.Line, e.Column = boundedyaml.Message(err)
	if len(e.Text) > 300 {
		e.Text = strings.ToValidUTF8(e.Text[:300], "") + "..."
	}
	lines := strings.Split(string(text), "\n")
	if e.Line > 0 && e.Line <= len(lines) && strings.Contains(lines[e.Line-1][:indentation(lines[e.Line-1])], "\t") {
		e.Text, e.Hint = "is indented with a tab", "YAML wants spaces"
	} else if strings.Contains(e.Text, "is not allowed in this context") {
		e.Hint = "look at the spaces at the beginning of this line and of the next: the fields of a mapping begin in one column, and an item of a list with a dash and a space"
	} else if e.Line > 0 && e.Line <= len(lines) && unquoted.MatchString(lines[e.Line-1]) {
		e.Hint = `put an expression with brackets in quotes, as in key: 'header["x"]'`
	}
	return e
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// begin returns the first token of a value. For a mapping, it is that of the first
// key and not the colon behind it.
func begin(n ast.Node) *token.Token {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		if len(n.Values) > 0 && !n.IsFlowStyle {
			return begin(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return begin(n.Key)
	}
	return n.GetToken()
}
