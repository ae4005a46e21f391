package mulesoft

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Key is the translation of a key selector.
type Key struct {
	// Expression is the key in the language of policy files; "" if all requests
	// share a counter.
	Expression string
	// Remarks are the differences between the translation and the original.
	Remarks []string
}

// maxSelector is the longest key selector, in bytes.
const maxSelector = 4096

// header is the part of a script before its body: a version, an output, or both.
var header = regexp.MustCompile(`(?s)^\s*(%dw\s+\d+(\.\d+)?\s*)?(output\s+[\w/.*+-]+\s*)?---`)

// advice tells what to write instead of an expression that cannot be
// translated.
const advice = `write it by hand, from method, path, ip, header["x"], query["x"], +, ==, and cidr(ip, "10.0.0.0/8")`

// Translate translates a key selector: a DataWeave expression in #[...], or
// text, which is the same for all requests. The error names the part that
// cannot be translated and tells what to write instead.
func Translate(selector string) (Key, error) {
	if len(selector) > maxSelector {
		return Key{}, fmt.Errorf("it has %d bytes: at most %d (%s)", len(selector), maxSelector, advice)
	}
	source := strings.TrimSpace(selector)
	switch {
	case source == "":
		return Key{}, nil
	case !strings.HasPrefix(source, "#["):
		return Key{Remarks: []string{fmt.Sprintf("keySelector %q is no expression: all requests share one counter", source)}}, nil
	case !strings.HasSuffix(source, "]"):
		return Key{}, fmt.Errorf("#[ has no ] at its end (write keySelector: \"#[attributes.method]\")")
	}
	source = source[2 : len(source)-1]
	source = source[len(header.FindString(source)):]
	all, err := tokens(source)
	if err != nil {
		return Key{}, fmt.Errorf("%w (%s)", err, advice)
	}
	p := &reader{tokens: all}
	expression, err := p.expression()
	if err == nil && p.peek().kind != end {
		err = fmt.Errorf("%v is not translated", p.peek())
	}
	if err != nil {
		return Key{}, fmt.Errorf("%w (%s)", err, advice)
	}
	return Key{expression, p.remarks}, nil
}

// reader reads the part of DataWeave that the documentation's key selectors use.
type reader struct {
	tokens  []token
	remarks []string
	depth   int
}

func (p *reader) peek() token { return p.tokens[0] }

func (p *reader) next() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

// take takes a token if it is the one that is expected.
func (p *reader) take(k kind, value string) bool {
	if p.peek() != (token{k, value}) {
		return false
	}
	p.next()
	return true
}

func (p *reader) want(value string) error {
	if !p.take(symbol, value) {
		return fmt.Errorf("%v is where %s is expected", p.peek(), value)
	}
	return nil
}

// remark adds a remark once.
func (p *reader) remark(text string) {
	for _, r := range p.remarks {
		if r == text {
			return
		}
	}
	p.remarks = append(p.remarks, text)
}

// maxNesting bounds the depth of an expression.
const maxNesting = 50

// expression reads if (...) ... else ..., or alternatives.
func (p *reader) expression() (string, error) {
	if p.depth++; p.depth > maxNesting {
		return "", fmt.Errorf("more than %d parts within each other", maxNesting)
	}
	defer func() { p.depth-- }()
	if !p.take(name, "if") {
		return p.infix(0)
	}
	if err := p.want("("); err != nil {
		return "", err
	}
	condition, err := p.expression()
	if err == nil {
		err = p.want(")")
	}
	if err != nil {
		return "", err
	}
	yes, err := p.expression()
	if err != nil {
		return "", err
	}
	if !p.take(name, "else") {
		return "", fmt.Errorf("%v is where else is expected", p.peek())
	}
	no, err := p.expression()
	if err != nil {
		return "", err
	}
	return "(" + condition + " ? " + yes + " : " + no + ")", nil
}

// infixes are the operators between two operands, those that bind least first, and
// how they are written in a policy file.
var infixes = []map[token]string{
	{{name, "or"}: "or"},
	{{name, "and"}: "and"},
	{{symbol, "=="}: "==", {symbol, "!="}: "!=", {name, "startsWith"}: "startsWith", {name, "endsWith"}: "endsWith", {name, "contains"}: "contains"},
	{{symbol, "++"}: "+"},
}

func (p *reader) infix(level int) (string, error) {
	if level == len(infixes) {
		return p.operand()
	}
	left, err := p.infix(level + 1)
	for count := 0; err == nil; count++ {
		written, found := infixes[level][p.peek()]
		if !found {
			break
		}
		if level == 2 && count > 0 {
			return "", fmt.Errorf("%v follows another comparison: put one of them in parentheses", p.peek())
		}
		p.next()
		var right string
		if right, err = p.infix(level + 1); err == nil {
			left = "(" + left + " " + written + " " + right + ")"
		}
	}
	return left, err
}

// ends reports whether an expression ends here.
func (p *reader) ends() bool {
	t := p.peek()
	return t.kind == end || t == token{symbol, ")"} || t == token{name, "else"}
}

// negation reads not and !, and what they negate.
func (p *reader) negation() (string, error) {
	t := p.peek()
	if t != (token{symbol, "!"}) && t != (token{name, "not"}) {
		value, _, err := p.primary()
		return value, err
	}
	p.next()
	of, err := p.negation()
	switch {
	case err != nil:
		return "", err
	case t.kind == name && !p.ends():
		// MuleSoft's documents disagree about "not true or true".
		return "", fmt.Errorf("%v follows not and its operand, which can be read in two ways: write not (a or b), (not a) or b, or !a or b", p.peek())
	case p.peek() == token{name, "default"}:
		return "", fmt.Errorf("default is translated behind one attribute only")
	}
	return "(not " + of + ")", nil
}

// operand reads a value, and a value to take if it is missing.
func (p *reader) operand() (string, error) {
	if t := p.peek(); t == (token{symbol, "!"}) || t == (token{name, "not"}) {
		return p.negation()
	}
	value, attribute, err := p.primary()
	if err != nil || !p.take(name, "default") {
		return value, err
	}
	if !attribute {
		return "", fmt.Errorf("default is translated behind one attribute only")
	}
	other, _, err := p.primary()
	if err == nil && !p.ends() {
		return "", fmt.Errorf("%v follows default: put the part with default in parentheses", p.peek())
	}
	p.remark("with default, a value that is empty counts as missing")
	return "(" + value + ` != "" ? ` + value + " : " + other + ")", err
}

// functions are those of one argument that both languages have.
var functions = map[string]bool{"upper": true, "lower": true, "trim": true}

// primary reads a value. attribute is true for a header or a query parameter.
func (p *reader) primary() (value string, attribute bool, err error) {
	t := p.next()
	switch {
	case t.kind == text:
		return strconv.Quote(t.value), false, nil
	case t == token{symbol, "("} || t.kind == name && functions[t.value]:
		function := ""
		if t.kind == name {
			function = t.value
			if err := p.want("("); err != nil {
				return "", false, err
			}
		}
		of, err := p.expression()
		if err == nil {
			err = p.want(")")
		}
		return function + "(" + of + ")", false, err
	case t == token{name, "attributes"}:
		return p.attribute()
	}
	return "", false, fmt.Errorf("%v is not translated", t)
}

// attribute reads what follows attributes.
func (p *reader) attribute() (value string, named bool, err error) {
	which, err := p.selected()
	if err != nil {
		return "", false, err
	}
	switch which {
	case "method":
		return "method", false, nil
	case "requestPath":
		return "path", false, nil
	case "remoteAddress":
		p.remark("attributes.remoteAddress has the port of the connection; ip is the address alone, and IPv6 addresses are cut to 64 bits")
		return "ip", false, nil
	case "headers", "queryParams", "queryParam":
		of, err := p.selected()
		if err != nil {
			return "", false, fmt.Errorf("attributes.%s: %w: want a name, such as attributes.%s['x']", which, err, which)
		}
		if which == "headers" {
			return "header[" + strconv.Quote(strings.ToLower(of)) + "]", true, nil
		}
		if which == "queryParam" {
			p.remark("attributes.queryParam is read as attributes.queryParams")
		}
		return "query[" + strconv.Quote(of) + "]", true, nil
	}
	return "", false, fmt.Errorf("attributes.%s is not translated", which)
}

// selected reads .x, .'x' or ['x'].
func (p *reader) selected() (string, error) {
	bracket := p.take(symbol, "[")
	if !bracket && !p.take(symbol, ".") {
		return "", fmt.Errorf("%v is where a name is expected", p.peek())
	}
	t := p.next()
	if t.kind != text && (bracket || t.kind != name) {
		return "", fmt.Errorf("%v is where a name is expected", t)
	}
	if bracket {
		return t.value, p.want("]")
	}
	return t.value, nil
}
