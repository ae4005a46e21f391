package file

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/floodgate-go/floodgate/internal/boundedyaml"
)

// MaxBytes is the size of the largest file, in bytes.
const MaxBytes = 1 << 20

// maxNodes is the most values of a file. Those of an alias count each time.
const maxNodes = boundedyaml.MaxNodes

// parse returns the file's only document.
func (r *reader) parse(text []byte) (value, bool) {
	if len(text) > MaxBytes {
		r.errs = append(r.errs, Problem{Place{}, fmt.Sprintf("has more than %d bytes", MaxBytes), "a policy file has at most so many"})
		return value{}, false
	}
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")): // some editors write a byte order mark
		text = text[3:]
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		r.errs = append(r.errs, Problem{Place{Line: 1, Column: 1}, "is text in UTF-16", "save the file as UTF-8"})
		return value{}, false
	}
	if line := invalidLine(text); line > 0 {
		r.errs = append(r.errs, Problem{Place{Line: line, Column: 1}, "is not text in UTF-8", ""})
		return value{}, false
	}
	file, err := boundedyaml.Parse(text, parser.AllowDuplicateMapKey())
	if err != nil {
		r.errs = append(r.errs, syntax(text, err))
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
		r.errs = append(r.errs, Problem{Place{}, "the file is empty", "want a field policies"})
		return value{}, false
	case 1:
	default:
		r.bad(value{node: docs[1].Body}, "a second document", "a policy file has one")
		return value{}, false
	}
	return value{node: docs[0].Body}, true
}

// invalidLine returns the first line that is not UTF-8 or has a character that YAML
// does not allow; 0 if there is none.
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

// unquoted finds an expression that is written without quotes. YAML takes its brackets
// for a list inside of a mapping in braces.
var unquoted = regexp.MustCompile(`:\s*(header|query|cookie|form|json)\[`)

// syntax returns a Problem for the parser's error.
func syntax(text []byte, err error) Problem {
	var e Problem
	e.Text, e.Line, e.Column = boundedyaml.Message(err)
	if len(e.Text) > 300 {
		e.Text = strings.ToValidUTF8(e.Text[:300], "") + "..."
	}
	lines := strings.Split(string(text), "\n")
	if e.Line > 0 && e.Line <= len(lines) && strings.Contains(lines[e.Line-1][:indentation(lines[e.Line-1])], "\t") {
		e.Text, e.Hint = "is indented with a tab", "YAML wants spaces"
	} else if strings.Contains(e.Text, "is not allowed in this context") {
		e.Hint = "look at the spaces at the beginning of this line and of the next: the fields of a mapping begin in one column, and an item of a list with a dash and a space"
	} else if e.Line > 0 && e.Line <= len(lines) && unquoted.MatchString(lines[e.Line-1]) {
		e.Hint = `put an expression with brackets in quotes, as in key: 'header["x"]'`
	}
	return e
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// begin returns the first token of a value. For a mapping, it is that of the first
// key and not the colon behind it.
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
