package keyfuncs

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

var errNotUTF8 = errors.New("keyfuncs: the value is not valid UTF-8")

// TrimSpace takes ASCII white space off both ends of a value, for [Normalize].
// It never gives an error.
func TrimSpace(s string) (string, error) { return strings.Trim(s, " \t\r\n\v\f"), nil }

// FoldCase makes one of the spellings of a value that differ in letter case
// only, by Unicode's simple case folding, for [Normalize]. It gives an error for
// what is not valid UTF-8.
func FoldCase(s string) (string, error) {
	if !utf8.ValidString(s) {
		return s, errNotUTF8
	}
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s), nil
}
