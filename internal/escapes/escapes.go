// Package escapes decodes the escapes of queries, forms and paths as lenient servers do.
package escapes

import (
	"strconv"
	"strings"
)

// Decode decodes percent-escapes once, and makes each plus a space, as for the value of a form.
// It leaves a malformed escape as it is, as fasthttp does; ok is then false, because net/url
// drops such a value. It may be called concurrently.
func Decode(s string) (text string, ok bool) {
	at := strings.IndexAny(s, "%+")
	if at < 0 {
		return s, true
	}
	ok = true
	b := append(make([]byte, 0, len(s)), s[:at]...)
	for ; at < len(s); at++ {
		switch {
		case s[at] == '+':
			b = append(b, ' ')
		case s[at] != '%':
			b = append(b, s[at])
		default:
			c, err := strconv.ParseUint(s[at+1:min(at+3, len(s))], 16, 8)
			if err != nil || at+2 >= len(s) {
				b, ok = append(b, '%'), false
				continue
			}
			b = append(b, byte(c))
			at += 2
		}
	}
	return string(b), ok
}
