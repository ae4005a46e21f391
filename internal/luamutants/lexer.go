//go:build unix

package main

import "fmt"

// kind is what a token is.
type kind int

const (
	other kind = iota // punctuation, and names
	number
	operator
)

// token is a part of a Lua file. Comments, strings and white space are none.
type token struct {
	kind kind
	text string
	at   int // in bytes
}

// lex returns the tokens of a Lua file.
func lex(text string) (tokens []token, err error) {
	for i := 0; i < len(text); {
		c := text[i]
		start := i
		k := other
		switch {
		case c == ' ' || c == '\t' || c == '\n':
			i++
			continue
		case c == '-' && i+1 < len(text) && text[i+1] == '-':
			for i < len(text) && text[i] != '\n' {
				i++
			}
			continue
		case c == '\'' || c == '"':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if i >= len(text) {
				return nil, fmt.Errorf("a string that begins at byte %d does not end", start)
			}
			i++
			tokens = append(tokens, token{other, text[start:i], start})
			continue
		case isDigit(c):
			k = number
			for i < len(text) && (isDigit(text[i]) || isLetter(text[i]) || text[i] == '.' && !dots(text, i)) {
				i++
			}
		case isLetter(c):
			for i < len(text) && (isLetter(text[i]) || isDigit(text[i])) {
				i++
			}
			if word := text[start:i]; word == "and" || word == "or" || word == "not" {
				k = operator
			}
		default:
			i++
			if i < len(text) {
				switch text[start : i+1] {
				case "==", "~=", "<=", ">=", "..":
					i++
				}
			}
			k = operator
		}
		tokens = append(tokens, token{k, text[start:i], start})
	}
	return tokens, nil
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }

func dots(text string, i int) bool { return i+1 < len(text) && text[i+1] == '.' }
