package keyfuncs

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/floodgate-go/floodgate/core"
)

// MaxName is the length of the longest name that [PlainName] accepts, in bytes.
const MaxName = 1 << 10

var (
	errNotUTF8  = errors.New("keyfuncs: the value is not valid UTF-8")
	errLongName = &core.BadRequestError{Detail: fmt.Sprintf("a name has at most %d bytes", MaxName)}
	errBadName  = &core.BadRequestError{Detail: "a name must be UTF-8 text, without control characters, invisible characters and special spaces"}
)

// TrimSpace removes the white space at both ends of a value, for [Normalize]:
// all characters that have Unicode's property White_Space. It never returns an
// error.
func TrimSpace(s string) (string, error) { return strings.TrimSpace(s), nil }

// PlainName is a function for [Normalize] that makes sure that a value can be
// the name of one account only, whatever a handler removes from it. It removes
// the white space at both ends. The error is a [core.BadRequestError] if the
// value is longer than [MaxName] bytes, is not valid UTF-8, or has a control
// character (Unicode's category Cc), a format character such as a zero-width
// joiner (Cf), another character that is not visible (Default_Ignorable_Code_Point
// and the blank of Braille), or a separator other than a plain space (Zs, Zl, Zp)
// inside.
//
// A long value is refused and not cut: many long values that begin alike would
// share a counter, which somebody could use up for somebody else.
func PlainName(s string) (string, error) {
	if len(s) > MaxName {
		return s, errLongName
	}
	trimmed := strings.TrimSpace(s)
	if !utf8.ValidString(trimmed) || strings.ContainsFunc(trimmed, isHidden) {
		return s, errBadName
	}
	return trimmed, nil
}

func isHidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	const brailleBlank = '\u2800'
	return r == brailleBlank || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Z, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// FoldCase maps the spellings of a value that differ in letter case only to one
// spelling, for [Normalize], by Unicode's simple case folding. The Turkish letters
// U+0130 and U+0131 become an I, because strings.ToLower and strings.ToUpper take
// them for an i. The error says that the value is not valid UTF-8.
func FoldCase(s string) (string, error) {
	if !utf8.ValidString(s) {
		return s, errNotUTF8
	}
	return strings.Map(func(r rune) rune {
		if r == 'İ' || r == 'ı' {
			return 'I'
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s), nil
}
