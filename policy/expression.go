package policy

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/floodgate-go/floodgate/core"
)

// The most that an expression may have, and may see of a request. As the language
// has no loops, no variables and no functions whose result is longer than their
// arguments, they bound the time and memory of an evaluation. A regular
// expression takes, at worst, time in proportion to the size of its program
// multiplied by the length of its input: maxWork bounds this product.
const (
	maxExpression = 4096     // bytes
	maxNodesOf    = 500      // nodes of its syntax tree
	maxProgram    = 500      // instructions of all its regular expressions together
	maxInput      = 64 << 10 // bytes of all values that it reads in one evaluation
	maxWork       = 500_000  // instructions multiplied by bytes
)

// expression is a compiled expression. Its methods may be called concurrently.
type expression struct {
	text     string
	program  *vm.Program
	prefixes [][]netip.Prefix // of its calls of cidr
	fields   map[accessed]readers
	single   core.KeyFunc // where the expression is nothing but one value of the request
	sources  *sources
	result   reflect.Type // interface{} where it is not known
	patterns int          // instructions of its regular expressions
	values   []string     // what it reads of a request: the plainNames and namedNames, each once
}

// mostInput returns how many bytes an evaluation may read.
func (e *expression) mostInput() int {
	if e.patterns == 0 {
		return maxInput
	}
	return min(maxInput, maxWork/e.patterns)
}

// accessed is a named value of a request, such as header["x"].
type accessed struct{ kind, name string }

// names of the language that need nothing behind them, and those that want a
// name in brackets.
var (
	plainNames = []string{"method", "path", "route", "ip", "user"}
	namedNames = []string{"header", "query", "cookie", "form", "json"}
	// builtins are the functions of the expression language that cannot be made
	// to take much time or memory.
	builtins = []string{"len", "lower", "upper", "trim", "trimPrefix", "trimSuffix", "int", "float", "string", "abs", "min", "max", "round", "floor", "ceil", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix"}
)

// expressionError is an error of an expression's text and where in it.
type expressionError struct {
	line, column int // from 0
	problem      string
	hint         string
}

// compile reads an expression, or one in MuleSoft's #[...].
func compile(text string, from *sources) (e *expression, bad *expressionError) {
	if len(text) > maxExpression {
		return nil, &expressionError{problem: fmt.Sprintf("an expression of %d bytes", len(text)), hint: fmt.Sprintf("at most %d", maxExpression)}
	}
	source := text
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "#[") {
		if !strings.HasSuffix(trimmed, "]") {
			return nil, &expressionError{problem: fmt.Sprintf("%q: #[ has no ] at its end", shorten(text))}
		}
		begin, end := strings.Index(text, "#["), strings.LastIndex(text, "]")
		source = text[:begin] + "  " + text[begin+2:end] // places stay what they are
	}
	defer func() {
		if p := recover(); p != nil {
			e, bad = nil, &expressionError{problem: fmt.Sprintf("%q: cannot be read: %v", shorten(text), p)}
		}
	}()
	e = &expression{text: text, sources: from, fields: map[accessed]readers{}}
	rewriting := &rewriter{expression: e}
	options := []expr.Option{expr.Env(&scope{}), expr.MaxNodes(maxNodesOf), expr.Patch(rewriting), expr.DisableAllBuiltins()}
	for _, name := range builtins {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err := expr.Compile(source, options...)
	if rewriting.bad != nil {
		return nil, rewriting.bad.bound(text)
	}
	if err != nil {
		return nil, describe(text, err)
	}
	e.program = program
	e.result = program.Node().Type()
	if e.result == nil {
		e.result = reflect.TypeFor[any]()
	}
	if !scalar(e.result) {
		return nil, &expressionError{problem: fmt.Sprintf("%q: is %s: want text, a number, true or false", shorten(text), article(e.result))}
	}
	e.single = rewriting.alone(program.Node())
	return e, nil
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

var unknownName = regexp.MustCompile(`unknown name (\S+)`)

// describe makes an expressionError of the compiler's.
func describe(text string, err error) *expressionError {
	bad := &expressionError{problem: err.Error()}
	var at *file.Error
	if errors.As(err, &at) {
		bad.line, bad.column, bad.problem = at.Line-1, at.Column, at.Message
	}
	bad.problem = strings.Join(strings.Fields(bad.problem), " ")
	all := append(append([]string{}, plainNames...), namedNames...)
	if m := unknownName.FindStringSubmatch(bad.problem); m != nil {
		bad.hint = nearest(m[1], append(all, "cidr"))
		for _, name := range namedNames {
			if m[1] == name {
				bad.problem, bad.hint = name+": of which name?", fmt.Sprintf("write %s[\"name\"]", name)
			}
		}
		if m[1] == "attributes" {
			bad.hint = "known are attributes.method, attributes.requestPath, attributes.remoteAddress, attributes.headers['x'] and attributes.queryParams['x']"
		}
		if bad.hint == "" {
			bad.hint = "known are " + strings.Join(all, ", ") + " and cidr"
		}
	}
	bad.problem = fmt.Sprintf("%q: %s", shorten(text), strings.TrimSpace(bad.problem))
	return bad
}

// evaluators are scopes with machines to run programs in.
var evaluators = sync.Pool{New: func() any { return newScope() }}

// value returns the expression's value for a request: a string, bool, int,
// int64 or float64, or nil. Its error is core.ErrBadRequest, wrapped, where the
// request has something in it that the expression cannot work with.
func (e *expression) value(r core.Request) (any, error) { return e.run(r, false) }

// run works the expression out. certain says that it decides whether a policy is
// for the request.
func (e *expression) run(r core.Request, certain bool) (any, error) {
	s := evaluators.Get().(*scope)
	defer s.release()
	s.request, s.expression, s.certain = r, e, certain
	v, err := s.machine.Run(e.program, s)
	if s.err != nil {
		return nil, s.err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the expression %q cannot be worked out: %s", core.ErrBadRequest, shorten(e.text), firstLine(err.Error()))
	}
	return v, nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// key appends the expression's value as text to dst.
func (e *expression) key(dst []byte, r core.Request) ([]byte, error) {
	if e.single != nil {
		return e.single(dst, r)
	}
	v, err := e.value(r)
	if err != nil {
		return dst, err
	}
	return appendText(dst, v)
}

// appendText writes a value so that equal ones are equal text.
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

// holds returns the value of an expression that is true or false.
func (e *expression) holds(r core.Request) (bool, error) {
	v, err := e.run(r, true)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%w: the expression %q is neither true nor false", core.ErrBadRequest, shorten(e.text))
	}
	return b, nil
}

// hits returns the value of an expression that is a number of hits. Fractions
// count as a whole hit.
func (e *expression) hits(r core.Request) (int64, error) {
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
