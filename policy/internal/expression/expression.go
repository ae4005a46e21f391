// Package expression compiles and evaluates the expressions of policy files: keys, fallbacks,
// tiers, costs and conditions, in the language of github.com/expr-lang/expr, with a bound for the
// time and memory of each evaluation.
package expression

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// MaxBytes is the length of the longest expression, in bytes.
const MaxBytes = 4096

// Bounds of the time and memory of an evaluation. They suffice because the language as used here
// has no loops, no variables and no functions whose result is longer than their arguments. The time
// of a regular expression grows, at worst, with the product of its program's size and its input's
// length: maxWork bounds the product.
const (
	maxNodesOf = 500      // nodes of its syntax tree
	maxProgram = 500      // instructions of all its regular expressions together
	maxInput   = 64 << 10 // bytes of all values that it reads in one evaluation
	maxWork    = 500_000  // instructions multiplied by bytes
)

// Expression is a compiled expression. Its methods may be called concurrently.
type Expression struct {
	text     string
	program  *vm.Program
	prefixes [][]netip.Prefix // of its calls of cidr
	fields   map[accessed]readers
	single   core.KeyFunc // of an expression that is just one value of the request; else nil
	sources  *Sources
	patterns int      // instructions of its regular expressions
	values   []string // the plainNames and namedNames that it reads, each once
}

// mostInput returns how many bytes an evaluation may read.
func (e *Expression) mostInput() int {
	if e.patterns == 0 {
		return maxInput
	}
	return min(maxInput, maxWork/e.patterns)
}

// accessed is a named value of a request, such as header["x"].
type accessed struct{ kind, name string }

// The names of the language, without and with a name in brackets behind them.
var (
	plainNames = []string{"method", "path", "route", "ip", "user"}
	namedNames = []string{"header", "query", "param", "cookie", "form", "json"}
	// builtins are the functions of the language that cannot take much time or memory.
	builtins = []string{"len", "lower", "upper", "trim", "trimPrefix", "trimSuffix", "int", "float", "string", "abs", "min", "max", "round", "floor", "ceil", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix"}
)

// attributes is the hint for MuleSoft's attributes.
const attributes = "known are attributes.method, attributes.requestPath, attributes.remoteAddress, attributes.headers['x'] and attributes.queryParams['x']"

// Error is a mistake in an expression.
type Error struct {
	Problem string
	Hint    string // how to write it; may be ""
}

// Kind is the use of an expression's values.
type Kind uint8

// The kinds of expressions.
const (
	Text   Kind = iota // any value but a list and a mapping: Key writes it as text
	Bool               // see Holds
	Number             // see Hits
)

// Compile compiles an expression, which may stand in MuleSoft's #[...].
func Compile(text string, from *Sources, kind Kind) (e *Expression, bad *Error) {
	if len(text) > MaxBytes {
		return nil, &Error{Problem: fmt.Sprintf("an expression of %d bytes", len(text)), Hint: fmt.Sprintf("at most %d", MaxBytes)}
	}
	source := text
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "#[") {
		if !strings.HasSuffix(trimmed, "]") {
			return nil, &Error{Problem: fmt.Sprintf("%q: #[ has no ] at its end", words.Shorten(text))}
		}
		begin, end := strings.Index(text, "#["), strings.LastIndex(text, "]")
		source = text[begin+2 : end]
	}
	defer func() {
		if p := recover(); p != nil {
			e, bad = nil, &Error{Problem: fmt.Sprintf("%q: cannot be read: %v", words.Shorten(text), p)}
		}
	}()
	e = &Expression{text: text, sources: from, fields: map[accessed]readers{}}
	rewriting := &rewriter{expression: e}
	options := []expr.Option{expr.Env(&scope{}), expr.MaxNodes(maxNodesOf), expr.Patch(rewriting), expr.DisableAllBuiltins(),
		expr.Operator("+", "sum "), expr.Operator("-", "difference "), expr.Operator("*", "product ")}
	for _, name := range builtins {
		options = append(options, expr.EnableBuiltin(name))
	}
	switch kind {
	case Bool:
		options = append(options, expr.AsBool())
	case Number:
		options = append(options, expr.AsFloat64())
	case Text:
	}
	program, err := expr.Compile(source, options...)
	if rewriting.bad != nil {
		return nil, rewriting.bad
	}
	if err != nil {
		return nil, describe(text, err)
	}
	e.program = program
	if t := program.Node().Type(); t != nil && slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map, reflect.Struct, reflect.Pointer, reflect.Func}, t.Kind()) {
		return nil, &Error{Problem: fmt.Sprintf("%q: is a list or a mapping: want text, a number, true or false", words.Shorten(text))}
	}
	e.single = rewriting.alone(program.Node())
	return e, nil
}

var (
	unknownName = regexp.MustCompile(`unknown name (\S+)`)
	// plainWord is text that is the name of a header or of a parameter rather than an expression.
	plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)*$`)
	curly     = regexp.MustCompile(`unrecognized character: U\+201[89CD]`)
)

// oneCounter is the hint for a key that is the same for all requests.
const oneCounter = "for one counter of all requests, leave the key out"

// describe returns an Error for the compiler's.
func describe(text string, err error) *Error {
	problem, hint := err.Error(), ""
	var at *file.Error
	if errors.As(err, &at) {
		problem = at.Message // without its place and a drawing of the text
	}
	problem = strings.Join(strings.Fields(problem), " ")
	known := slices.Concat(plainNames, namedNames, []string{"cidr"})
	name := ""
	if m := unknownName.FindStringSubmatch(problem); m != nil {
		name = m[1]
	}
	switch {
	case curly.MatchString(problem):
		hint = `write straight quotes, ' or "`
	case strings.Contains(problem, "unexpected token Identifier"):
		hint = "text is written in quotes; " + oneCounter
	case name == "":
	case name == "attributes":
		hint = attributes
	case slices.Contains(namedNames, name):
		problem, hint = name+": of which name?", fmt.Sprintf("write %s[\"name\"]", name)
	case plainWord.MatchString(text):
		hint = fmt.Sprintf("known are %s; to read a value of this name, write header[%q] or query[%q]; ", strings.Join(known, ", "), text, text) + oneCounter
	default:
		hint = "known are " + strings.Join(known, ", ")
	}
	return &Error{fmt.Sprintf("%q: %s", words.Shorten(text), problem), hint}
}

// evaluators are scopes that are not in use.
var evaluators = sync.Pool{New: func() any { return newScope() }}

// value returns the expression's value for a request: a string, bool, int or float64, or nil. The
// error is core.ErrBadRequest, wrapped, if the expression cannot be evaluated for the request.
func (e *Expression) value(r core.Request) (any, error) { return e.run(r, false) }

// run evaluates the expression. certain is true if the value decides whether a policy applies to
// the request.
func (e *Expression) run(r core.Request, certain bool) (any, error) {
	s := evaluators.Get().(*scope)
	defer s.release()
	s.request, s.expression, s.certain = r, e, certain
	v, err := s.machine.Run(e.program, s)
	if s.err != nil {
		return nil, s.err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the expression %q cannot be worked out: %s", core.ErrBadRequest, words.Shorten(e.text), firstLine(err.Error()))
	}
	return v, nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
