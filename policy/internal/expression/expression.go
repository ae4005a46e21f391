// Package expression compiles and evaluates the expressions of policy files: keys,
// fallbacks, tiers, costs and conditions, in the language of
// github.com/expr-lang/expr, with a bound for the time and memory of each
// evaluation.
package expression

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
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

// Bounds of the time and memory of an evaluation. They suffice because the language
// as used here has no loops, no variables and no functions whose result is longer
// than their arguments. The time of a regular expression grows, at worst, with the
// product of its program's size and its input's length: maxWork bounds the product.
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
	single   core.KeyFunc // if the expression is nothing but one value of the request
	sources  *Sources
	result   reflect.Type // interface{} if it is not known
	patterns int          // instructions of its regular expressions
	empty    bool         // whether its value may be empty
	values   []string     // what it reads of a request: the plainNames and namedNames, each once
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
	// builtins are the functions of the language that cannot take much time or
	// memory.
	builtins = []string{"len", "lower", "upper", "trim", "trimPrefix", "trimSuffix", "int", "float", "string", "abs", "min", "max", "round", "floor", "ceil", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix"}
)

// Error is a mistake in an expression and its place.
type Error struct {
	Line, Column int // from 0
	Problem      string
	Hint         string // how to write it; may be ""
}

// Compile compiles an expression, which may stand in MuleSoft's #[...].
func Compile(text string, from *Sources) (e *Expression, bad *Error) {
	if len(text) > MaxBytes {
		return nil, &Error{Problem: fmt.Sprintf("an expression of %d bytes", len(text)), Hint: fmt.Sprintf("at most %d", MaxBytes)}
	}
	source := text
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "#[") {
		if !strings.HasSuffix(trimmed, "]") {
			return nil, &Error{Problem: fmt.Sprintf("%q: #[ has no ] at its end", words.Shorten(text))}
		}
		begin, end := strings.Index(text, "#["), strings.LastIndex(text, "]")
		source = text[:begin] + "  " + text[begin+2:end] // places stay what they are
	}
	defer func() {
		if p := recover(); p != nil {
			e, bad = nil, &Error{Problem: fmt.Sprintf("%q: cannot be read: %v", words.Shorten(text), p)}
		}
	}()
	e = &Expression{text: text, sources: from, fields: map[accessed]readers{}}
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
		return nil, &Error{Problem: fmt.Sprintf("%q: is %s: want text, a number, true or false", words.Shorten(text), article(e.result))}
	}
	e.single = rewriting.alone(program.Node())
	e.empty = mayBeEmpty(program.Node())
	return e, nil
}

var unknownName = regexp.MustCompile(`unknown name (\S+)`)

// describe returns an Error for the compiler's.
func describe(text string, err error) *Error {
	bad := &Error{Problem: err.Error()}
	var at *file.Error
	if errors.As(err, &at) {
		bad.Line, bad.Column, bad.Problem = at.Line-1, at.Column, at.Message
	}
	bad.Problem = strings.Join(strings.Fields(bad.Problem), " ")
	all := append(append([]string{}, plainNames...), namedNames...)
	if m := unknownName.FindStringSubmatch(bad.Problem); m != nil {
		bad.Hint = words.Nearest(m[1], append(all, "cidr"))
		for _, name := range namedNames {
			if m[1] == name {
				bad.Problem, bad.Hint = name+": of which name?", fmt.Sprintf("write %s[\"name\"]", name)
			}
		}
		if m[1] == "attributes" {
			bad.Hint = "known are attributes.method, attributes.requestPath, attributes.remoteAddress, attributes.headers['x'] and attributes.queryParams['x']"
		}
		if bad.Hint == "" {
			bad.Hint = "known are " + strings.Join(all, ", ") + " and cidr"
			if m[1] == text {
				bad.Hint += fmt.Sprintf("; the header of this name is header[%q]; ", text) + oneCounter
			}
		}
	}
	if hint := commonMistake(text, bad.Problem); hint != "" {
		bad.Hint = hint
	}
	bad.Problem = fmt.Sprintf("%q: %s", words.Shorten(text), strings.TrimSpace(bad.Problem))
	return bad
}

// evaluators are scopes that are not in use.
var evaluators = sync.Pool{New: func() any { return newScope() }}

// value returns the expression's value for a request: a string, bool, int,
// int64 or float64, or nil. The error is core.ErrBadRequest, wrapped, if the
// expression cannot be evaluated for the request.
func (e *Expression) value(r core.Request) (any, error) { return e.run(r, false) }

// run evaluates the expression. certain is true if the value decides whether a policy
// applies to the request.
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

// bareWord is text that is the name of a header or of a parameter rather than an
// expression.
var bareWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)+$`)

// addressWord is what other software calls the client's address.
var addressWord = regexp.MustCompile(`(?i)^(client|remote|source|peer)?[_-]?(ip|addr|address)([_-]?(addr|address))?$`)

// dotted is a value of a request that is written with a dot.
var dotted = regexp.MustCompile(`^(header|query|cookie|form|json)s?\.([A-Za-z0-9_-]+)$`)

// oneCounter is for those who write a text that is the same for all requests.
const oneCounter = "for one counter of all requests, leave the key out"

// mistakes are messages of the compiler, and what to write in place of what they are
// about. The first one that is found counts.
var mistakes = []struct {
	message *regexp.Regexp
	hint    string
}{
	{regexp.MustCompile(`unexpected token Operator\("="\)`), `to compare, write ==, as in method == "POST"`},
	{regexp.MustCompile(`unexpected token Operator\("&"\)`), `write &&, or and`},
	{regexp.MustCompile(`unexpected token Operator\("!"\)`), `to negate, write != or not, as in not (method == "POST")`},
	{regexp.MustCompile(`unknown name (GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\b`), `text is written in quotes, as in method == "POST"`},
	{regexp.MustCompile(`has no method (startsWith|endsWith|contains|matches)`), `it is an operator: write path startsWith "/api", path endsWith ".js", path contains "x" or path matches "^/a+$"`},
	{regexp.MustCompile(`has no method`), `values have no methods: write lower(path), len(path) or path startsWith "/api"`},
	{regexp.MustCompile(`invalid operation: in \(`), `in looks in a list, as in method in ["GET", "HEAD"]; for addresses write cidr(ip, "10.0.0.0/8")`},
	{regexp.MustCompile(`Identifier\("(AND|And)"\)`), `write and, or &&`},
	{regexp.MustCompile(`Identifier\("(OR|Or)"\)`), `write or, or ||`},
	{regexp.MustCompile(`unexpected token Identifier`), "text is written in quotes; " + oneCounter},
	{regexp.MustCompile(`unrecognized character: U\+201[89CD]`), `write straight quotes, ' or "`},
}

var singleBar = regexp.MustCompile(`[^|]\|[^|]`)

// commonMistake returns what to write in place of a common mistake, "" if the
// compiler's message is about another one.
func commonMistake(text, problem string) string {
	if addressWord.MatchString(text) {
		return "write ip, which is the client's address; a header such as X-Forwarded-For counts if client-ip names it and the proxies that write it"
	}
	if m := dotted.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("write %s[%q]", m[1], m[2])
	}
	if bareWord.MatchString(text) {
		return fmt.Sprintf("to read a value that a request has under this name, write header[%q] or query[%q]; ", text, text) + oneCounter
	}
	for _, m := range mistakes {
		if m.message.MatchString(problem) {
			return m.hint
		}
	}
	if strings.Contains(problem, "unexpected token") && singleBar.MatchString(text) {
		return `write ||, or the word or`
	}
	return ""
}
