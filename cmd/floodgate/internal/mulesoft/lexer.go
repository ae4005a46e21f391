package mulesoft

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token of DataWeave.
type kind int

const (
	end kind = iota
	name
	text // a string; its value is unquoted
	number
	symbol
)

type token struct {
	kind  kind
	value string
}

func (t token) String() string {
	switch t.kind {
	case end:
		return "the end"
	case text:
		return fmt.Sprintf("%q", t.value)
	case name, number, symbol:
	}
	return t.value
}

// symbols are the operators, the longer ones first.
var symbols = []string{"++", "==", "!=", ">=", "<=", "~=", ".", "[", "]", "(", ")", "!", ">", "<", ",", "+", "-", "*", "/", "?", ":", "{", "}", "$", "@", "#", "&", "|", "%"}

const digits = "0123456789"

// tokens cuts an expression into tokens.
func tokens(s string) ([]token, error) {
	var all []token
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		c, _ := utf8.DecodeRuneInString(s)
		switch {
		case c == '\'' || c == '"' || c == '`':
			i := strings.IndexRune(s[1:], c)
			if i < 0 {
				return nil, fmt.Errorf("a string has no %c at its end", c)
			}
			value := s[1 : i+1]
			if strings.ContainsAny(value, `\$`) {
				return nil, fmt.Errorf("the string %q has an escape or a $: write the text itself", value)
			}
			all, s = append(all, token{text, value}), s[i+2:]
		case unicode.IsLetter(c) || c == '_':
			i := strings.IndexFunc(s, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' })
			if i < 0 {
				i = len(s)
			}
			all, s = append(all, token{name, s[:i]}), s[i:]
		case strings.ContainsRune(digits, c):
			rest := strings.TrimLeft(s, digits)
			all, s = append(all, token{number, strings.TrimSuffix(s, rest)}), rest
		default:
			found := ""
			for _, op := range symbols {
				if strings.HasPrefix(s, op) {
					found = op
					break
				}
			}
			if strings.ContainsRune("‘’“”", c) {
				return nil, fmt.Errorf("%q is not known here: write straight quotes, ' or \"", c)
			}
			if found == "" {
				return nil, fmt.Errorf("%q is not known here", c)
			}
			all, s = append(all, token{symbol, found}), s[len(found):]
		}
	}
	return append(all, token{end, ""}), nil
}
