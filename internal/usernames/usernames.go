// Package usernames has the checks of usernames that the login guard and the tests of keyfuncs
// share.
package usernames

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/floodgate-go/floodgate/core"
)

// MaxLength is the maximum length of a name that [Plain] accepts, in bytes.
const MaxLength = 1 << 10

var (
	errNotUTF8  = errors.New("floodgate: the value is not valid UTF-8")
	errLongName = &core.BadRequestError{Detail: fmt.Sprintf("a name has at most %d bytes", MaxLength)}
	errBadName  = &core.BadRequestError{Detail: "a name must be UTF-8 text, without control characters, invisible characters and special spaces"}
)

// Plain is a function for keyfuncs.Normalize. It denies values that are the name of another account
// after a handler or a database has removed characters from them. It first removes white space at
// both ends. The error is a [core.BadRequestError] if
//   - the value is longer than [MaxLength] bytes, or not valid UTF-8;
//   - the value contains a control character (Unicode's category Cc) or a format
//     character such as a zero-width joiner (Cf);
//   - the value contains another character that is not visible
//     (Default_Ignorable_Code_Point, or the blank of Braille);
//   - the value contains a separator other than the plain space (Zs, Zl, Zp).
//
// Plain does not cut long values. If it did, long values with the same beginning would share a
// counter, and one client could use up the quota of another.
func Plain(s string) (string, error) {
	if len(s) > MaxLength {
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

// Fold is a function for keyfuncs.Normalize. It returns the same text for all values that differ in
// letter case only, by Unicode's simple case folding. The Turkish letters U+0130 and U+0131 become
// I, because strings.ToLower maps U+0130 to i, and strings.ToUpper maps U+0131 to I. Fold returns
// an error if the value is not valid UTF-8.
func Fold(s string) (string, error) {
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
