package policy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxFile  = 1 << 20 // bytes of a file
	maxDepth = 20      // nesting of a file's values
	maxNodes = 100_000 // values of a file, each alias's counted again
	maxNames = 10_000  // anchors and aliases of a file
)

// parse returns the file's only document.
func (r *reader) parse(text []byte) (value, bool) {
	if len(text) > maxFile {
		r.errs = append(r.errs, &Error{File: r.file, Problem: fmt.Sprintf("%d bytes", len(text)), Hint: fmt.Sprintf("a policy file has at most %d", maxFile)})
		return value{}, false
	}
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")): // some editors write a byte order mark
		text = text[3:]
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		r.errs = append(r.errs, &Error{File: r.file, Line: 1, Column: 1, Problem: "is text in UTF-16", Hint: "save the file as UTF-8"})
		return value{}, false
	}
	if line := invalidLine(text); line > 0 {
		r.errs = append(r.errs, &Error{File: r.file, Line: line, Column: 1, Problem: "is not text in UTF-8"})
		return value{}, false
	}
	file, err := parseYAML(text)
	if err != nil {
		r.errs = append(r.errs, r.syntax(text, err))
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
		r.errs = append(r.errs, &Error{File: r.file, Problem: "the file is empty", Hint: "want a field policies"})
		return value{}, false
	case 1:
	default:
		r.bad(value{node: docs[1].Body}, "a second document", "a policy file has one")
		return value{}, false
	}
	return value{node: docs[0].Body}, true
}

// invalidLine returns the first line that is not UTF-8, or has a character that
// YAML does not allow; 0 where there is none.
func invalidLine(text []byte) int {
	line := 1
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		switch {
		case c == '\n':
			line++
		case c == utf8.RuneError && size == 1, c < ' ' && c != '\t' && c != '\r', c == 0x7f:
			return line
		}
		text = text[size:]
	}
	return 0
}

// parseYAML is the parser, kept from nesting without end and from panicking.
func parseYAML(text []byte) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("is no YAML: the parser fails: %v", p)
		}
	}()
	if err := bounded(text); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(string(text))
	if err := boundedTokens(tokens); err != nil {
		return nil, err
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// bounded refuses text that would take the parser much time or memory. It sees
// characters, not values, and so counts generously.
func bounded(text []byte) error {
	depth, values, names := 0, 0, 0
	before := byte('\n')
	for i, c := range text {
		after := byte('\n')
		if i+1 < len(text) {
			after = text[i+1]
		}
		begins, ends := strings.IndexByte(" \t\r\n[{,:-?", before) >= 0, after == ' ' || after == '\n' || after == '\r'
		switch {
		case c == '[' || c == '{':
			if depth++; depth > 10*maxDepth {
				return fmt.Errorf("brackets are nested more than %d deep", 10*maxDepth)
			}
		case c == ']' || c == '}':
			depth = max(0, depth-1)
		case (c == '&' || c == '*') && begins && !ends && after != '/' && after != '*':
			if names++; names > maxNames {
				return fmt.Errorf("has more than %d anchors and aliases", maxNames)
			}
		case c == ':' && (ends || before == '"'), (c == '-' || c == '?') && begins && ends, c == '!' && begins:
			if values++; values > maxNodes {
				return fmt.Errorf("has more than %d values", maxNodes)
			}
		}
		before = c
	}
	for line := range strings.Lines(string(text)) {
		if strings.Count(line, "- ")+strings.Count(line, "? ")+strings.Count(line, "!") > 10*maxDepth && len(strings.Trim(line, "-?! \r\n")) < len(line)/2 {
			return fmt.Errorf("lists are nested more than %d deep", 10*maxDepth)
		}
	}
	return nil
}

// syntax makes an Error of the parser's.
func (r *reader) syntax(text []byte, err error) *Error {
	e := &Error{File: r.file}
	var at yaml.Error
	if !errors.As(err, &at) {
		e.Problem = err.Error()
	} else { // whose Error would print all of the file, in a time that grows with its square
		e.Problem = "is no YAML: " + at.GetMessage()
		if tk := at.GetToken(); tk != nil && tk.Position != nil {
			e.Line, e.Column = tk.Position.Line, max(1, tk.Position.Column)
		}
	}
	if e.Problem = strings.Join(strings.Fields(e.Problem), " "); len(e.Problem) > 300 {
		e.Problem = strings.ToValidUTF8(e.Problem[:300], "") + "..."
	}
	lines := strings.Split(string(text), "\n")
	if e.Line > 0 && e.Line <= len(lines) && strings.Contains(lines[e.Line-1][:indentation(lines[e.Line-1])], "\t") {
		e.Problem, e.Hint = "is indented with a tab", "YAML wants spaces"
	}
	return e
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// begin returns the first token of a value: a mapping's is that of its first
// key, not of the colon behind it.
func begin(n ast.Node) *token.Token {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		if len(n.Values) > 0 && !n.IsFlowStyle {
			return begin(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return begin(n.Key)
	}
	return n.GetToken()
}
