package expression

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// String returns the expression as it is written in the file.
func (e *Expression) String() string { return e.text }

// Kind describes what the values are, for messages: "a number".
func (e *Expression) Kind() string { return article(e.result) }

// MayBeBool reports whether the values may be true or false.
func (e *Expression) MayBeBool() bool {
	return e.result.Kind() == reflect.Bool || e.result.Kind() == reflect.Interface
}

// MayBeNumber reports whether the values may be numbers.
func (e *Expression) MayBeNumber() bool {
	return slices.Contains([]reflect.Kind{reflect.Int, reflect.Int64, reflect.Float64, reflect.Interface}, e.result.Kind())
}

// Reads reports whether the expression reads a value of a request, such as route
// or header.
func (e *Expression) Reads(name string) bool { return slices.Contains(e.values, name) }

// written has the values that a client can choose, and their names for messages.
var written = map[string]string{"header": "header", "query": "query parameter", "param": "path parameter", "cookie": "cookie", "form": "form field", "json": "JSON field"}

// Written returns the name of the first value that the expression reads and a client
// can choose, such as "query parameter"; "" if there is none. The expression may be
// nil.
func (e *Expression) Written() string {
	if e == nil {
		return ""
	}
	for _, name := range e.values {
		if what, found := written[name]; found && (name != "header" || !e.trusted()) {
			return what
		}
	}
	return ""
}

// Lacks returns what a request without a key lacks, for the client: such as
// `the header "X-Api-Key" is missing`. It returns "" if the expression is more than
// one value of the request, or if clients do not write the value.
func (e *Expression) Lacks() string {
	if e.single == nil || e.Written() == "" {
		return ""
	}
	for f := range e.fields {
		return fmt.Sprintf("the %s %q is missing", written[f.kind], f.name)
	}
	return ""
}

// trusted reports whether all headers that the expression reads are trusted.
func (e *Expression) trusted() bool {
	for f := range e.fields {
		if f.kind == "header" && !slices.ContainsFunc(e.sources.Trusted, func(name string) bool { return strings.EqualFold(name, f.name) }) {
			return false
		}
	}
	return true
}

func scalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64, reflect.Interface:
		return true
	}
	return false
}

func article(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "a number"
	}
	return "no value"
}

// Key appends the expression's value as text to dst.
func (e *Expression) Key(dst []byte, r core.Request) ([]byte, error) {
	if e.single != nil {
		return e.single(dst, r)
	}
	v, err := e.value(r)
	if err != nil {
		return dst, err
	}
	return appendText(dst, v)
}

// appendText appends a value as text. Equal values are equal text.
func appendText(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return dst, nil
	case string:
		return append(dst, v...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		return strconv.AppendFloat(dst, v, 'f', -1, 64), nil
	}
	return dst, fmt.Errorf("%w: the expression's value is a %T", core.ErrBadRequest, v)
}

// Holds returns the value of an expression that is true or false.
func (e *Expression) Holds(r core.Request) (bool, error) {
	v, err := e.run(r, true)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%w: the expression %q is neither true nor false", core.ErrBadRequest, words.Shorten(e.text))
	}
	return b, nil
}

// Hits returns the value of an expression that is a number of hits. Fractions
// count as a whole hit.
func (e *Expression) Hits(r core.Request) (int64, error) {
	v, err := e.value(r)
	if err != nil {
		return 0, err
	}
	f := -1.0
	switch v := v.(type) {
	case int:
		f = float64(v)
	case int64:
		f = float64(v)
	case float64:
		f = math.Ceil(v)
	}
	if f < 0 || f > core.MaxQuota+1 || math.IsNaN(f) {
		return 0, fmt.Errorf("%w: the cost is no number of hits", core.ErrBadRequest)
	}
	return int64(f), nil
}

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
