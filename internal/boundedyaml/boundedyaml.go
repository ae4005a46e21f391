// Package boundedyaml parses YAML that a stranger may have written: it bounds the time and the
// memory that the parser takes, and recovers its panics.
package boundedyaml

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The largest numbers of a text that [Parse] takes.
const (
	MaxDepth = 20      // nesting of values; brackets and lists of one line may be nested ten times as deep
	MaxNodes = 100_000 // values
	maxNames = 10_000  // anchors and aliases
)

// Parse parses text. A text beyond the bounds is refused before it is parsed. The parser's time may
// grow with the square of the text's length, so the caller bounds that length.
func Parse(text []byte) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, fmt.Errorf("is no YAML: the parser fails: %v", p)
		}
	}()
	if err := bounded(text); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(string(text))
	if err := boundedTokens(tokens); err != nil {
		return nil, err
	}
	return parser.Parse(withoutEmptyDocuments(tokens), 0)
}

// withoutEmptyDocuments removes a --- if only comments stand between it and the next one. The
// parser drops all that follows two such tokens (goccy/go-yaml#870).
func withoutEmptyDocuments(tokens token.Tokens) token.Tokens {
	kept := make(token.Tokens, 0, len(tokens))
	header := -1 // where in kept, if only comments follow it so far
	for _, t := range tokens {
		switch t.Type {
		case token.CommentType:
		case token.DocumentHeaderType:
			if header >= 0 {
				kept = slices.Delete(kept, header, header+1)
			}
			header = len(kept)
		default:
			header = -1
		}
		kept = append(kept, t)
	}
	return kept
}

// Message returns what an error of the parser says, on one line, without the parts of the text that
// it quotes, which may be a password. line and column are the place, from 1; both are 0 if the
// error has none.
func Message(err error) (message string, line, column int) {
	var at yaml.Error
	if !errors.As(err, &at) {
		message = err.Error()
	} else { // whose Error would print all of the text, in a time that grows with its square
		message = "is no YAML: " + at.GetMessage()
		if t := at.GetToken(); t != nil && t.Position != nil {
			line, column = t.Position.Line, max(1, t.Position.Column)
		}
		first, last := strings.IndexByte(message, '"'), strings.LastIndexByte(message, '"')
		if last-first > len(`"\\n`) { // more than one character
			message = message[:first] + "..." + message[last+1:]
		}
	}
	return strings.Join(strings.Fields(message), " "), line, column
}

// maxFields is the most fields of a mapping: the parser's time grows with their square.
const maxFields = 1000

// boundedTokens returns an error for tokens that would take the parser long. Unlike bounded, it
// knows comments and quotes.
func boundedTokens(tokens token.Tokens) error {
	type open struct{ column, fields int } // column 0: in brackets
	var mappings []open
	values, brackets := 0, 0
	count := func(t *token.Token) error {
		m := &mappings[len(mappings)-1]
		if m.fields++; m.fields > maxFields {
			return fmt.Errorf("line %d: a mapping has more than %d fields", t.Position.Line, maxFields)
		}
		return nil
	}
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
			mappings = append(mappings, open{})
			if t.Type == token.SequenceStartType {
				mappings[len(mappings)-1].fields = -MaxNodes // a list: only values counts
			}
		case token.SequenceEndType, token.MappingEndType:
			if brackets > 0 {
				brackets--
				mappings = mappings[:len(mappings)-1]
			}
		case token.CollectEntryType:
			if values++; values > MaxNodes {
				return fmt.Errorf("has more than %d values", MaxNodes)
			}
			if brackets > 0 {
				if err := count(t); err != nil {
					return err
				}
			}
		case token.SequenceEntryType, token.MappingValueType:
			if brackets > 0 {
				continue
			}
			column := t.Position.Column
			if t.Type == token.MappingValueType && t.Prev != nil && t.Prev.Position.Line == t.Position.Line {
				column = t.Prev.Position.Column
			}
			for len(mappings) > 0 && mappings[len(mappings)-1].column > column {
				mappings = mappings[:len(mappings)-1]
			}
			if t.Type == token.SequenceEntryType {
				continue
			}
			if len(mappings) == 0 || mappings[len(mappings)-1].column < column {
				mappings = append(mappings, open{column: column})
			}
			if err := count(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// bounded returns an error for text that would take the parser much time or memory. It sees only
// characters, so its bounds are generous.
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
			if depth++; depth > 10*MaxDepth {
				return fmt.Errorf("brackets are nested more than %d deep", 10*MaxDepth)
			}
		case c == ']' || c == '}':
			depth = max(0, depth-1)
		case (c == '&' || c == '*') && begins && !ends && after != '/' && after != '*':
			if names++; names > maxNames {
				return fmt.Errorf("has more than %d anchors and aliases", maxNames)
			}
		case c == ':' && (ends || before == '"'), (c == '-' || c == '?') && begins && ends, c == '!' && begins:
			if values++; values > MaxNodes {
				return fmt.Errorf("has more than %d values", MaxNodes)
			}
		}
		before = c
	}
	for line := range strings.Lines(string(text)) {
		if strings.Count(line, "- ")+strings.Count(line, "? ")+strings.Count(line, "!") > 10*MaxDepth && len(strings.Trim(line, "-?! \r\n")) < len(line)/2 {
			return fmt.Errorf("lists are nested more than %d deep", 10*MaxDepth)
		}
	}
	return nil
}
