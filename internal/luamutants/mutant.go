//go:build unix

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// mutant is one break of a file.
type mutant struct {
	file     string
	at       int // in bytes
	old, new string
	line     int
	source   string // the line, with the old text in «»
}

// key tells breaks apart, wherever the line is.
type key struct{ file, change, source string }

func (m mutant) key() key { return key{m.file, m.old + "→" + m.new, m.source} }

// apply returns the broken text.
func (m mutant) apply(text string) string { return text[:m.at] + m.new + text[m.at+len(m.old):] }

// other operators, and functions that are used as operators.
var others = map[string]string{
	"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "~=", "~=": "==",
	"+": "-", "-": "+", "*": "/", "/": "*", "%": "*",
	"and": "or", "or": "and", "not": "",
	"true": "false", "false": "true",
	"max": "math.min", "min": "max", "floor": "math.ceil", "ceil": "math.floor",
}

// mutants returns all breaks of a file. Of breaks of lines that are alike, the
// source of the second one ends in #2, and so on.
func mutants(file, text string) (all []mutant, err error) {
	tokens, err := lex(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	alike := map[key]int{}
	for i, t := range tokens {
		var previous, next string
		if i > 0 {
			previous = tokens[i-1].text
		}
		if i+1 < len(tokens) {
			next = tokens[i+1].text
		}
		replacement, ok := "", false
		switch {
		case t.kind == number:
			n, err := strconv.ParseInt(t.text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: byte %d: %w", file, t.at, err)
			}
			replacement, ok = strconv.FormatInt(n+1, 10), true
		case t.kind == operator || t.text == "true" || t.text == "false":
			replacement, ok = others[t.text]
			if t.text == "-" && !operand(previous) {
				ok = false // of a negative constant
			}
		case next == "(": // a call of one of the functions
			replacement, ok = others[t.text]
		}
		if ok {
			m := newMutant(file, text, t, replacement)
			k := m.key()
			if alike[k]++; alike[k] > 1 {
				m.source += fmt.Sprint(" #", alike[k])
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// operand says whether a token ends what an operator may stand behind.
func operand(text string) bool {
	if text == "" || text == "return" {
		return false
	}
	last := text[len(text)-1]
	return isLetter(last) || isDigit(last) || last == ')' || last == ']' || last == '\''
}

func newMutant(file, text string, t token, replacement string) mutant {
	start := strings.LastIndexByte(text[:t.at], '\n') + 1
	end := len(text)
	if n := strings.IndexByte(text[t.at:], '\n'); n >= 0 {
		end = t.at + n
	}
	after := t.at + len(t.text)
	source := strings.TrimSpace(text[start:t.at] + "«" + t.text + "»" + text[after:end])
	return mutant{file, t.at, t.text, replacement, strings.Count(text[:t.at], "\n") + 1, source}
}
