package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// value is a value of the file, and how one got there.
type value struct {
	node ast.Node
	path string
}

// reader reads a file's values, and notes all that is wrong with them.
type reader struct {
	file    string
	errs    []*Error
	doubts  []*Error // what is legal and probably a mistake
	anchors map[string]ast.Node
	nodes   int
}

// bad notes that something is wrong with a value.
func (r *reader) bad(v value, problem, hint string) {
	r.badAt(v, 0, 0, problem, hint)
}

// doubt notes that a value is legal and probably a mistake.
func (r *reader) doubt(v value, problem, hint string) {
	errs := r.errs
	r.bad(v, problem, hint)
	r.doubts, r.errs = append(r.doubts, r.errs[len(r.errs)-1]), errs
}

// badAt notes it for a place so many lines and columns behind the value's
// beginning.
func (r *reader) badAt(v value, lines, columns int, problem, hint string) {
	e := &Error{File: r.file, Field: v.path, Problem: problem, Hint: hint}
	if tk := begin(v.node); tk != nil && tk.Position != nil {
		e.Line, e.Column = tk.Position.Line+lines, max(1, tk.Position.Column)+columns
	}
	r.errs = append(r.errs, e)
}

// open returns what a value stands for: what an alias names, what an anchor or a
// tag stands before. ok is false where that cannot be; it has been noted.
func (r *reader) open(v value) (value, bool) {
	for range maxDepth {
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
				r.bad(v, fmt.Sprintf("*%s: there is no anchor of this name before it", n.Value), "")
				return v, false
			}
			v.node = to
		case *ast.TagNode:
			r.bad(v, n.Start.Value+": tags are not used in policy files", "leave it out")
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

// kind describes a value for messages.
func kind(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return strconv.Quote(shorten(n.Value))
	case *ast.LiteralNode:
		return strconv.Quote(shorten(n.Value.Value))
	default:
		return shorten(n.String())
	}
}

func shorten(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:57], "") + "..."
	}
	return s
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
		r.bad(v, kind(v.node)+": want "+want, "")
		return "", false
	default:
		r.bad(v, kind(v.node)+": is not text: want "+want, "text that looks like something else stands in quotes")
		return "", false
	}
	if s == "" {
		r.bad(v, "is empty", "want "+want)
		return "", false
	}
	return s, true
}

// choice reads one of some words.
func (r *reader) choice(v value, words ...string) (string, bool) {
	v, ok := r.open(v)
	if !ok {
		return "", false
	}
	want := "want " + strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	n, ok := v.node.(*ast.StringNode)
	if ok {
		for _, w := range words {
			if n.Value == w {
				return w, true
			}
		}
	}
	r.bad(v, kind(v.node)+": "+want, nearest(kindText(v.node), words))
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
		r.bad(v, kind(v.node)+": "+want, "")
		return 0, false
	}
	i, err := strconv.ParseInt(n.Token.Value, 10, 64)
	if err != nil || i < least || i > most {
		r.bad(v, n.Token.Value+": "+want, "")
		return 0, false
	}
	return i, true
}

func (r *reader) boolean(v value) bool {
	v, ok := r.open(v)
	if !ok {
		return false
	}
	n, ok := v.node.(*ast.BoolNode)
	if !ok {
		r.bad(v, kind(v.node)+": want true or false", "")
		return false
	}
	return n.Value
}

// list reads a list of at least one and at most so many values.
func (r *reader) list(v value, most int, want string) []value {
	v, ok := r.open(v)
	if !ok {
		return nil
	}
	n, ok := v.node.(*ast.SequenceNode)
	if !ok {
		r.bad(v, kind(v.node)+": want "+want, "")
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

// quoted is how many characters stand before the text of a value.
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
