package expression

import (
	"fmt"
	"net/netip"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// rewriter turns what operators write into calls of the scope's functions:
// method into "method "(), header["x"] into "header "("x"). Names that end with
// a space cannot be written in an expression.
type rewriter struct {
	expression *Expression
	bad        *placedError
}

type placedError struct {
	Error
	at file.Location
}

// bound finds the line and column in the expression's text.
func (p *placedError) bound(text string) *Error {
	e := p.Error
	for i, c := range []rune(text) {
		if i == p.at.From {
			break
		}
		e.Column++
		if c == '\n' {
			e.Line, e.Column = e.Line+1, 0
		}
	}
	e.Problem = fmt.Sprintf("%q: %s", words.Shorten(text), e.Problem)
	return &e
}

func (w *rewriter) fail(n ast.Node, problem, hint string) {
	if w.bad == nil {
		w.bad = &placedError{Error{Problem: problem, Hint: hint}, n.Location()}
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
			w.fail(n, "user is not available", "pass policy.WithUser")
		case strings.HasPrefix(n.Value, "$"):
			w.fail(n, "unknown name "+n.Value, "")
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
			w.fail(n, "there are no ranges here", "")
		case "matches":
			if text, constant := n.Right.(*ast.StringNode); !constant {
				w.fail(n, "the pattern behind matches has to stand in quotes", "")
			} else {
				w.pattern(n, text.Value)
			}
		case "**", "^":
			w.fail(n, "there are no powers here", "")
		}
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		w.fail(n, "there are no variables here", "write it out")
	case *ast.PredicateNode, *ast.PointerNode:
		w.fail(n, "there are no loops here", "")
	case *ast.MapNode:
		w.fail(n, "there are no mappings here", "")
	}
}

// plain rewrites one of the plainNames.
func (w *rewriter) plain(node *ast.Node, name string) {
	w.reads(name)
	ast.Patch(node, call(name))
}

// pattern bounds the size of the programs of regular expressions: a repetition
// multiplies what it repeats.
func (w *rewriter) pattern(n ast.Node, text string) {
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
		w.fail(n, fmt.Sprintf("the regular expressions compile to %d instructions: at most %d", w.expression.patterns, maxProgram),
			"write a shorter one, or one that repeats less: {1,900} is 900 copies")
	}
}

// reads notes what an expression reads of a request.
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
		w.attribute(node, n, name)
		return
	}
	if !slices.Contains(namedNames, of.Value) {
		return
	}
	if !constant {
		w.fail(n, of.Value+": the name in brackets has to stand in quotes", fmt.Sprintf("write %s[\"name\"]", of.Value))
		return
	}
	f, err := named(of.Value, name.Value)
	if err != nil {
		w.fail(n, fmt.Sprintf("%s[%q]: %v", of.Value, name.Value, err), "")
		return
	}
	if of.Value == "param" {
		f = w.expression.sources.param(name.Value, f)
		w.expression.fields[accessed{of.Value, name.Value}] = readers{f, f}
	} else {
		w.expression.fields[accessed{of.Value, name.Value}] = readers{f, certain(of.Value, name.Value)}
	}
	w.reads(of.Value)
	ast.Patch(node, call(of.Value, name))
}

func (w *rewriter) attribute(node *ast.Node, n *ast.MemberNode, name *ast.StringNode) {
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
		w.fail(n, "attributes."+name.Value+": is not known",
			"known are attributes.method, attributes.requestPath, attributes.remoteAddress, attributes.headers['x'] and attributes.queryParams['x']")
	}
}

// call rewrites cidr(ip, "10.0.0.0/8", ...): its prefixes are read once.
func (w *rewriter) call(node *ast.Node, n *ast.CallNode) {
	name, ok := n.Callee.(*ast.IdentifierNode)
	if !ok || name.Value != "cidr" {
		return
	}
	if len(n.Arguments) < 2 {
		w.fail(n, "cidr wants an address and one prefix or more", `write cidr(ip, "10.0.0.0/8")`)
		return
	}
	var prefixes []netip.Prefix
	for _, a := range n.Arguments[1:] {
		text, constant := a.(*ast.StringNode)
		if !constant {
			w.fail(a, "cidr: a prefix has to stand in quotes", `write cidr(ip, "10.0.0.0/8")`)
			return
		}
		p, err := ParsePrefix(text.Value)
		if err != nil {
			w.fail(a, "cidr: "+err.Error(), "")
			return
		}
		prefixes = append(prefixes, p)
	}
	index := &ast.IntegerNode{Value: len(w.expression.prefixes)}
	w.expression.prefixes = append(w.expression.prefixes, prefixes)
	if of, plain := n.Arguments[0].(*ast.CallNode); plain && of.Callee.String() == "ip " {
		ast.Patch(node, call("inside", index)) // the whole address, not cut to a prefix as ip is
		return
	}
	ast.Patch(node, call("cidr", n.Arguments[0], index))
}

// alone returns the key function of an expression that is only one value of the
// request, nil for other expressions.
func (w *rewriter) alone(n ast.Node) core.KeyFunc {
	c, ok := n.(*ast.CallNode)
	if !ok {
		return nil
	}
	callee, ok := c.Callee.(*ast.IdentifierNode)
	if !ok || !strings.HasSuffix(callee.Value, " ") {
		return nil
	}
	name := strings.TrimSuffix(callee.Value, " ")
	if len(c.Arguments) == 0 {
		return w.expression.sources.plain(name)
	}
	if argument, constant := c.Arguments[0].(*ast.StringNode); constant {
		return w.expression.fields[accessed{name, argument.Value}].usual
	}
	return nil
}
