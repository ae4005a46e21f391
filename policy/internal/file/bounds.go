package file

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// maxFields is the most fields of a mapping: the parser's time grows with their
// square.
const maxFields = 1000

// boundedTokens returns an error for tokens that would take the parser long. Unlike
// bounded, it knows comments and quotes.
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
				mappings[len(mappings)-1].fields = -maxNodes // a list: only values counts
			}
		case token.SequenceEndType, token.MappingEndType:
			if brackets > 0 {
				brackets--
				mappings = mappings[:len(mappings)-1]
			}
		case token.CollectEntryType:
			if values++; values > maxNodes {
				return fmt.Errorf("has more than %d values", maxNodes)
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

// bounded returns an error for text that would take the parser much time or memory.
// It sees only characters, so its bounds are generous.
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
