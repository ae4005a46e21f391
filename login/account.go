package login

import (
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Normalize makes one of the spellings of a username that people take for the
// same: compatibility forms and composed characters (Unicode NFKC), letter case
// (simple case folding), and ASCII white space at the ends. Nothing else is
// taken away: a name with a NUL or an invisible character in it is another
// name. What is not valid UTF-8 is returned as it is.
func Normalize(username string) string {
	folded, err := keyfuncs.FoldCase(norm.NFKC.String(username))
	if err != nil {
		return username
	}
	// Folding may undo the form, and takes capitals for the simplest letters.
	trimmed, _ := keyfuncs.TrimSpace(norm.NFKC.String(strings.ToLower(folded)))
	return trimmed
}

// BasicUser keys by the user of HTTP Basic authentication (RFC 7617), as a
// further source of Config.Sources. Without such a header there is none. Two of
// them, and one that cannot be read, are core.ErrBadRequest: what reads it more
// leniently must not find a name where the guard takes another source's. Who
// logs in so does it with every request: Config.Methods has to name the methods,
// such as GET, and Config.Attempts to leave room for them.
func BasicUser() core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		lines := r.HeaderValues("Authorization")
		if len(lines) > 1 {
			return dst, fmt.Errorf("%w: Authorization stands twice", core.ErrBadRequest)
		}
		if len(lines) == 0 || len(lines[0]) < len(basic) || !strings.EqualFold(lines[0][:len(basic)], basic) {
			return dst, nil
		}
		credentials, spaced := strings.CutPrefix(lines[0][len(basic):], " ")
		if !spaced {
			return dst, errBasic // Echo takes any character for the space
		}
		text, err := base64.StdEncoding.DecodeString(strings.TrimLeft(credentials, " "))
		if err != nil {
			return dst, errBasic
		}
		user, _, found := strings.Cut(string(text), ":")
		if !found {
			return dst, errBasic
		}
		return append(dst, user...), nil
	}
}

const basic = "basic" // the scheme, in any letter case

var (
	errNoUsername    = fmt.Errorf("%w: the username is missing, or cannot be read", core.ErrBadRequest)
	errTwoUsernames  = fmt.Errorf("%w: two sources name different usernames", core.ErrBadRequest)
	errBasic         = fmt.Errorf("%w: Authorization of the scheme Basic cannot be read", core.ErrBadRequest)
	errOtherUsername = fmt.Errorf("%w: the username cannot be read", core.ErrBadRequest)
)

// account asks all sources for the username. Those that find one must agree.
func (c *Config) account(r core.Request) (string, error) {
	account, found := "", false
	for _, source := range c.Sources {
		raw, err := source(nil, r)
		switch {
		case err == nil:
		case isSkip(err):
			continue
		default:
			return "", err
		}
		if len(raw) == 0 {
			continue
		}
		name := c.Normalize(string(raw))
		if found && name != account {
			return "", errTwoUsernames
		}
		account, found = name, true
	}
	if account == "" && !c.AllowUnnamed {
		if found {
			return "", errOtherUsername
		}
		return "", errNoUsername
	}
	return account, nil
}
