package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxFile  = 1 << 20 // bytes of a file
	maxDepth = 20      // nesting of a file's values
	maxNodes = 100_000 // values of a file, each alias's counted again
)

// value is a value of the file, and how one got there.
type value struct {
	node ast.Node
	path string
}

// reader reads a file's values, and notes all that is wrong with them.
type reader struct {
	file    string
	errs    []*Error
	anchors map[string]ast.Node
	nodes   int
}

// parse returns the file's only document.
func (r *reader) parse(text []byte) (value, bool) {
	if len(text) > maxFile {
		r.errs = append(r.errs, &Error{File: r.file, Problem: fmt.Sprintf("%d bytes", len(text)), Hint: fmt.Sprintf("a policy file has at most %d", maxFile)})
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
			err = fmt.Errorf("cannot be read: %v", p)
		}
	}()
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			if depth++; depth > 10*maxDepth {
				return nil, errors.New("brackets are nested too deeply")
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	for line := range strings.Lines(string(text)) {
		if strings.Count(line, "- ")+strings.Count(line, "? ")+strings.Count(line, "!") > 10*maxDepth && len(strings.Trim(line, "-?! \r\n")) < len(line)/2 {
			return nil, errors.New("lists are nested too deeply")
		}
	}
	return parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
}

// syntax makes an Error of the parser's.
func (r *reader) syntax(text []byte, err error) *Error {
	e := &Error{File: r.file, Problem: "is no YAML: " + err.Error()}
	var at yaml.Error
	if errors.As(err, &at) {
		e.Problem = "is no YAML: " + at.GetMessage()
		if tk := at.GetToken(); tk != nil && tk.Position != nil {
			e.Line, e.Column = tk.Position.Line, max(1, tk.Position.Column)
		}
	}
	e.Problem = strings.Join(strings.Fields(e.Problem), " ")
	lines := strings.Split(string(text), "\n")
	if e.Line > 0 && e.Line <= len(lines) && strings.Contains(lines[e.Line-1][:indentation(lines[e.Line-1])], "\t") {
		e.Problem, e.Hint = "is indented with a tab", "YAML wants spaces"
	}
	return e
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// bad notes that something is wrong with a value.
func (r *reader) bad(v value, problem, hint string) {
	r.badAt(v, 0, 0, problem, hint)
}

// badAt notes it for a place so many lines and columns behind the value's
// beginning.
func (r *reader) badAt(v value, lines, columns int, problem, hint string) {
	e := &Error{File: r.file, Field: v.path, Problem: problem, Hint: hint}
	if tk := begin(v.node); tk != nil && tk.Position != nil {
		e.Line, e.Column = tk.Position.Line+lines, max(1, tk.Position.Column)+columns
	}
	r.errs = append(r.errs, e)
}

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

// open returns what a value stands for: what an alias names, what an anchor or a
// tag stands before. ok is false where that cannot be; it has been noted.
func (r *reader) open(v value) (value, bool) {
	for range maxDepth {
		switch n := v.node.(type) {
		case *ast.AnchorNode:
			if r.anchors == nil {
				r.anchors = map[string]ast.Node{}
			}
			r.anchors[n.Name.String()] = n.Value
			v.node = n.Value
		case *ast.AliasNode:
			to, known := r.anchors[n.Value.String()]
			if !known {
				r.bad(v, fmt.Sprintf("*%s: there is no anchor of this name before it", n.Value), "")
				return v, false
			}
			v.node = to
		case *ast.TagNode:
			r.bad(v, n.Start.Value+": tags are not used in policy files", "leave it out")
			return v, false
		default:
			if r.nodes++; r.nodes > maxNodes {
				if r.nodes == maxNodes+1 {
					r.bad(v, fmt.Sprintf("more than %d values", maxNodes), "")
				}
				return v, false
			}
			return v, true
		}
	}
	r.bad(v, "an alias that leads to itself", "")
	return v, false
}

// kind describes a value for messages.
func kind(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return strconv.Quote(shorten(n.Value))
	case *ast.LiteralNode:
		return strconv.Quote(shorten(n.Value.Value))
	default:
		return shorten(n.String())
	}
}

func shorten(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:57], "") + "..."
	}
	return s
}

const emptyHint = "a value that begins with # is a comment in YAML: put it in quotes"

// text reads a text that is not empty.
func (r *reader) text(v value, want string) (string, bool) {
	v, ok := r.open(v)
	if !ok {
		return "", false
	}
	var s string
	switch n := v.node.(type) {
	case *ast.StringNode:
		s = n.Value
	case *ast.LiteralNode:
		s = strings.TrimSuffix(n.Value.Value, "\n")
	case nil, *ast.NullNode:
		r.bad(v, "is empty", "want "+want+"; "+emptyHint)
		return "", false
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		r.bad(v, kind(v.node)+": want "+want, "")
		return "", false
	default:
		r.bad(v, kind(v.node)+": is not text: want "+want, "text that looks like something else stands in quotes")
		return "", false
	}
	if s == "" {
		r.bad(v, "is empty", "want "+want)
		return "", false
	}
	return s, true
}

// choice reads one of some words.
func (r *reader) choice(v value, words ...string) (string, bool) {
	v, ok := r.open(v)
	if !ok {
		return "", false
	}
	want := "want " + strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	n, ok := v.node.(*ast.StringNode)
	if ok {
		for _, w := range words {
			if n.Value == w {
				return w, true
			}
		}
	}
	r.bad(v, kind(v.node)+": "+want, nearest(kindText(v.node), words))
	return "", false
}

func kindText(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return ""
}

// integer reads a whole number of decimal digits.
func (r *reader) integer(v value, least, most int64) (int64, bool) {
	v, ok := r.open(v)
	if !ok {
		return 0, false
	}
	want := fmt.Sprintf("want a whole number from %d to %d", least, most)
	n, ok := v.node.(*ast.IntegerNode)
	if !ok {
		r.bad(v, kind(v.node)+": "+want, "")
		return 0, false
	}
	i, err := strconv.ParseInt(n.Token.Value, 10, 64)
	if err != nil || i < least || i > most {
		r.bad(v, n.Token.Value+": "+want, "")
		return 0, false
	}
	return i, true
}

func (r *reader) boolean(v value) bool {
	v, ok := r.open(v)
	if !ok {
		return false
	}
	n, ok := v.node.(*ast.BoolNode)
	if !ok {
		r.bad(v, kind(v.node)+": want true or false", "")
		return false
	}
	return n.Value
}

// list reads a list of at least one and at most so many values.
func (r *reader) list(v value, most int, want string) []value {
	v, ok := r.open(v)
	if !ok {
		return nil
	}
	n, ok := v.node.(*ast.SequenceNode)
	if !ok {
		r.bad(v, kind(v.node)+": want "+want, "")
		return nil
	}
	if len(n.Values) == 0 || len(n.Values) > most {
		r.bad(v, fmt.Sprintf("a list of %d: want %s, 1 to %d", len(n.Values), want, most), "")
		return nil
	}
	values := make([]value, len(n.Values))
	for i, e := range n.Values {
		values[i] = value{e, fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return values
}

// field says how a field of a mapping is read.
type field struct {
	name string
	read func(v value)
}

// mapping reads a mapping of known fields and returns which were there.
func (r *reader) mapping(v value, want string, fields ...field) (given map[string]value) {
	pairs, ok := r.pairs(v, want)
	if !ok {
		return nil
	}
	given = map[string]value{}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	for _, p := range pairs {
		known := false
		for _, f := range fields {
			if f.name == p.name {
				known = true
				given[p.name] = p.value
				f.read(p.value)
			}
		}
		if !known {
			hint := nearest(p.name, names)
			if hint == "" {
				hint = "the fields here are " + strings.Join(names, ", ")
			}
			if foreign, found := foreignFields[p.name]; found {
				hint = foreign
			}
			r.bad(value{p.key, p.value.path}, "there is no such field", hint)
		}
	}
	return given
}

func has(given map[string]value, name string) bool {
	_, found := given[name]
	return found
}

// foreignFields are what other software calls what is here, too.
var foreignFields = map[string]string{
	"keySelector":   "write key",
	"rateLimits":    "write limits",
	"exposeHeaders": "write headers: x-milliseconds",
	"clusterizable": "write counting: shared, or counting: local",
}

// pair is a field of a mapping.
type pair struct {
	name  string
	key   ast.Node
	value value
}

// pairs returns the fields of a mapping, each name once.
func (r *reader) pairs(v value, want string) ([]pair, bool) {
	v, ok := r.open(v)
	if !ok {
		return nil, false
	}
	var nodes []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		nodes = n.Values
	case *ast.MappingValueNode:
		nodes = []*ast.MappingValueNode{n}
	default:
		hint := ""
		if kind(v.node) == "nothing" {
			hint = "is anything missing below it?"
		}
		r.bad(v, kind(v.node)+": want "+want, hint)
		return nil, false
	}
	depth := strings.Count(v.path, ".") + strings.Count(v.path, "[")
	if depth > maxDepth {
		r.bad(v, "is nested too deeply", "")
		return nil, false
	}
	var pairs []pair
	lines := map[string]int{}
	for _, n := range nodes {
		name := kindText(n.Key)
		at := value{n.Key, v.path}
		if name == "" {
			r.bad(at, n.Key.String()+": is not the name of a field", "")
			continue
		}
		p := pair{name, n.Key, value{n.Value, name}}
		if v.path != "" {
			p.value.path = v.path + "." + name
		}
		if line, twice := lines[name]; twice {
			r.bad(value{n.Key, p.value.path}, fmt.Sprintf("stands twice, in line %d too", line), "")
			continue
		}
		lines[name] = n.Key.GetToken().Position.Line
		if isNull(n.Value) {
			p.value.node = &ast.NullNode{BaseNode: &ast.BaseNode{}, Token: n.Key.GetToken()}
		}
		pairs = append(pairs, p)
	}
	return pairs, true
}

func isNull(n ast.Node) bool {
	_, null := n.(*ast.NullNode)
	return n == nil || null
}

// nearest suggests the word that is most like what somebody has written.
func nearest(s string, words []string) string {
	best, least := "", len(s)/2+1
	for _, w := range words {
		if d := distance(strings.ToLower(s), strings.ToLower(w)); d < least && d < len(w) {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// distance is the Levenshtein distance, for short words.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return 40
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			before, row[j+1] = row[j+1], min(before+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func isList(v value) bool {
	_, is := v.node.(*ast.SequenceNode)
	return is
}

func isMapping(v value) bool {
	switch v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

// quoted is how many characters stand before the text of a value.
func quoted(v value) int {
	if tk := begin(v.node); tk != nil && (tk.Type == token.SingleQuoteType || tk.Type == token.DoubleQuoteType) {
		return 1
	}
	return 0
}

func isInteger(v value) bool {
	_, is := v.node.(*ast.IntegerNode)
	return is
}
