package file

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
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
	doubts  []Problem // values that are legal and probably mistakes
	spec    *Spec     // the part of the file that has been read
	options Options
}

// bad notes a problem of a value.
func (r *reader) bad(v value, problem, hint string) {
	r.errs = append(r.errs, Problem{v.place(), problem, hint})
}

// doubt notes that a value is legal and probably a mistake.
func (r *reader) doubt(v value, problem, hint string) {
	r.doubts = append(r.doubts, Problem{v.place(), problem, hint})
}

// describe describes a value for messages.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode:
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

func kindText(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return ""
}

func isList(v value) bool {
	_, is := v.node.(*ast.SequenceNode)
	return is
}

func isMapping(v value) bool {
	_, is := v.node.(*ast.MappingNode)
	return is
}

func isInteger(v value) bool {
	_, is := v.node.(*ast.IntegerNode)
	return is
}

// MaxBytes is the size of the largest file, in bytes.
const MaxBytes = 1 << 20

// parse returns the file's only document.
func (r *reader) parse(text []byte) (value, bool) {
	if len(text) > MaxBytes {
		r.errs = append(r.errs, Problem{Place{}, fmt.Sprintf("has more than %d bytes", MaxBytes), "a policy file has at most so many"})
		return value{}, false
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // some editors write a byte order mark
	if i := bytes.IndexFunc(text, notInYAML); i >= 0 {
		line := 1 + bytes.Count(text[:i], []byte("\n"))
		r.errs = append(r.errs, Problem{Place{Line: line, Column: 1}, "is not text in UTF-8", "save the file as UTF-8"})
		return value{}, false
	}
	file, err := boundedyaml.Parse(text)
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
	var other indirect
	if ast.Walk(&other, docs[0].Body); other.node != nil {
		// The message does not quote the value: a password may begin like an alias or a tag.
		r.bad(value{node: other.node}, "an anchor, an alias or a tag (a value that begins with &, * or !): a policy file has none", "write the value itself; text that begins so stands in quotes")
		return value{}, false
	}
	return value{node: docs[0].Body}, true
}

// indirect finds the first anchor, alias or tag.
type indirect struct{ node ast.Node }

// Visit implements [ast.Visitor].
func (i *indirect) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		if i.node == nil {
			i.node = n
		}
		return nil
	}
	return i
}

// notInYAML reports whether YAML does not allow a character, or whether it replaces bytes that are
// not UTF-8.
func notInYAML(c rune) bool {
	return c == utf8.RuneError || c < ' ' && !strings.ContainsRune("\t\r\n", c)
}

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
	}
	return n.GetToken()
}

// pair is a field of a mapping.
type pair struct {
	name  string
	key   ast.Node
	value value
}

// pairs returns the fields of a mapping.
func (r *reader) pairs(v value, want string) ([]pair, bool) {
	m, is := v.node.(*ast.MappingNode)
	if !is {
		hint := ""
		if describe(v.node) == "nothing" {
			hint = "is anything missing below it?"
		}
		r.bad(v, describe(v.node)+": want "+want, hint)
		return nil, false
	}
	var pairs []pair
	for _, n := range m.Values {
		name := kindText(n.Key)
		at := value{n.Key, v.path}
		if name == "" {
			hint := ""
			if isInteger(at) {
				hint = "put a key that is a number in quotes"
			}
			r.bad(at, words.Shown(n.Key.String())+": is not the name of a field", hint)
			continue
		}
		p := pair{name, n.Key, value{n.Value, words.Shown(name)}}
		if v.path != "" {
			p.value.path = v.path + "." + words.Shown(name)
		}
		if isNull(n.Value) {
			p.value.node = &ast.NullNode{BaseNode: &ast.BaseNode{}, Token: n.Key.GetToken()}
		}
		pairs = append(pairs, p)
	}
	return pairs, true
}

func isNull(n ast.Node) bool {
	_, null := n.(*ast.NullNode)
	return n == nil || null
}
