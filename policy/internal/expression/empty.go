package expression

import (
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// MayBeEmpty reports whether there can be a request for which the value is empty:
// one without a header that the expression reads, for example. The address, the
// method and the path are never empty. Of an expression that it does not know it
// returns true.
func (e *Expression) MayBeEmpty() bool { return e.empty }

// mayBeEmpty reports whether the value of a rewritten node may be empty text or nil.
func mayBeEmpty(n ast.Node) bool {
	if t := n.Type(); t != nil && slices.Contains([]reflect.Kind{reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64}, t.Kind()) {
		return false
	}
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value == ""
	case *ast.ConstantNode:
		return n.Value == nil || n.Value == ""
	case *ast.ConditionalNode:
		return mayBeEmpty(n.Exp1) || mayBeEmpty(n.Exp2)
	case *ast.BinaryNode:
		switch n.Operator {
		case "+":
			return mayBeEmpty(n.Left) && mayBeEmpty(n.Right)
		case "??": // the right value, if the left one is nil: text never is
			return mayBeEmpty(n.Left)
		}
	case *ast.BuiltinNode:
		switch n.Name {
		case "lower", "upper", "string":
			return mayBeEmpty(n.Arguments[0])
		}
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
			return !slices.Contains([]string{"ip", "method", "path"}, strings.TrimSuffix(callee.Value, " "))
		}
	}
	return true
}
