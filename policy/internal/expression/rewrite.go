package expression

import (
	"fmt"
	"net/netip"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// rewriter replaces the names in an expression by calls of the scope's functions: method by
// "plain "("method"), header["x"] by "named "("header", "x"). Names that end with a space
// cannot be written in an expression.
type rewriter struct {
	expression *Expression
	bad        *Error // the first mistake
}

func (w *rewriter) fail(problem, hint string) {
	if w.bad == nil {
		w.bad = &Error{fmt.Sprintf("%q: %s", words.Shorten(w.expression.text), problem), hint}
	}
}

func call(name string, args ...ast.Node) *ast.CallNode {
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name + " "}, Arguments: args}
}

// Visit implements [ast.Visitor]; a node's children have been visited before.
func (w *rewriter) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		switch {
		case n.Value == "user" && w.expression.sources.User == nil:
			w.fail("user is not available", "pass policy.WithUser")
		case strings.HasPrefix(n.Value, "$"):
			w.fail("unknown name "+n.Value, "")
		case slices.Contains(plainNames, n.Value):
			w.plain(node, n.Value)
		}
	case *ast.MemberNode:
		w.member(node, n)
	case *ast.CallNode:
		w.call(node, n)
	case *ast.BinaryNode:
		switch n.Operator {
		case "..":
			w.fail("there are no ranges here", "")
		case "matches":
			if text, constant := n.Right.(*ast.StringNode); !constant {
				w.fail("the pattern behind matches has to stand in quotes", "")
			} else {
				w.pattern(text.Value)
			}
		}
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		w.fail("there are no variables here", "write it out")
	case *ast.PredicateNode, *ast.PointerNode:
		w.fail("there are no loops here", "")
	}
}

// plain rewrites one of the plainNames.
func (w *rewriter) plain(node *ast.Node, name string) {
	w.reads(name)
	ast.Patch(node, call("plain", &ast.StringNode{Value: name}))
}

// pattern bounds the size of the programs of regular expressions: a repetition
// multiplies what it repeats.
func (w *rewriter) pattern(text string) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return // the compiler says what is wrong
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return
	}
	w.expression.patterns += len(program.Inst)
	if w.expression.patterns > maxProgram {
		w.fail(fmt.Sprintf("the regular expressions compile to %d instructions: at most %d", w.expression.patterns, maxProgram),
			"write a shorter one, or one that repeats less: {1,900} is 900 copies")
	}
}

// reads notes that the expression reads a value of the request.
func (w *rewriter) reads(name string) {
	if !slices.Contains(w.expression.values, name) {
		w.expression.values = append(w.expression.values, name)
	}
}

// member rewrites header["x"], and MuleSoft's attributes.
func (w *rewriter) member(node *ast.Node, n *ast.MemberNode) {
	of, ok := n.Node.(*ast.IdentifierNode)
	if !ok {
		return
	}
	name, constant := n.Property.(*ast.StringNode)
	if of.Value == "attributes" {
		w.attribute(node, name)
		return
	}
	if !slices.Contains(namedNames, of.Value) {
		return
	}
	if !constant {
		w.fail(of.Value+": the name in brackets has to stand in quotes", fmt.Sprintf("write %s[\"name\"]", of.Value))
		return
	}
	f, err := named(of.Value, name.Value)
	if err != nil {
		w.fail(fmt.Sprintf("%s[%q]: %v", of.Value, name.Value, err), "")
		return
	}
	w.expression.fields[accessed{of.Value, name.Value}] = readers{f, certain(of.Value, name.Value, f)}
	w.reads(of.Value)
	ast.Patch(node, call("named", &ast.StringNode{Value: of.Value}, name))
}

func (w *rewriter) attribute(node *ast.Node, name *ast.StringNode) {
	if name == nil {
		return
	}
	switch name.Value {
	case "method":
		w.plain(node, "method")
	case "requestPath":
		w.plain(node, "path")
	case "remoteAddress":
		w.plain(node, "ip")
	case "headers":
		ast.Patch(node, &ast.IdentifierNode{Value: "header"})
	case "queryParams", "queryParam":
		ast.Patch(node, &ast.IdentifierNode{Value: "query"})
	default:
		w.fail("attributes."+name.Value+": is not known",
			attributes)
	}
}

// call rewrites cidr(ip, "10.0.0.0/8", ...): its prefixes are read once. The address is
// the whole one, and not cut to a prefix as ip is.
func (w *rewriter) call(node *ast.Node, n *ast.CallNode) {
	name, ok := n.Callee.(*ast.IdentifierNode)
	if !ok || name.Value != "cidr" {
		return
	}
	if len(n.Arguments) < 2 || plainOf(n.Arguments[0]) != "ip" {
		w.fail("cidr wants ip and one prefix or more", `write cidr(ip, "10.0.0.0/8")`)
		return
	}
	var prefixes []netip.Prefix
	for _, a := range n.Arguments[1:] {
		text, constant := a.(*ast.StringNode)
		if !constant {
			w.fail("cidr: a prefix has to stand in quotes", `write cidr(ip, "10.0.0.0/8")`)
			return
		}
		p, err := ParsePrefix(text.Value)
		if err != nil {
			w.fail("cidr: "+err.Error(), "")
			return
		}
		prefixes = append(prefixes, p)
	}
	index := &ast.IntegerNode{Value: len(w.expression.prefixes)}
	w.expression.prefixes = append(w.expression.prefixes, prefixes)
	ast.Patch(node, call("inside", index))
}

// plainOf returns the one of plainNames that a rewritten node reads, or "".
func plainOf(n ast.Node) string {
	if c, ok := n.(*ast.CallNode); ok && len(c.Arguments) == 1 && c.Callee.String() == "plain " {
		return c.Arguments[0].(*ast.StringNode).Value
	}
	return ""
}

// alone returns the key function of an expression that is only one value of the
// request, nil for other expressions.
func (w *rewriter) alone(n ast.Node) core.KeyFunc {
	if name := plainOf(n); name != "" {
		return w.expression.sources.plain(name)
	}
	if c, ok := n.(*ast.CallNode); ok && c.Callee.String() == "named " {
		return w.expression.fields[accessed{c.Arguments[0].(*ast.StringNode).Value, c.Arguments[1].(*ast.StringNode).Value}].usual
	}
	return nil
}
