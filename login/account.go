package login

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Normalize maps the spellings of a username that people take for the same to
// one spelling: compatibility forms and composed characters (Unicode NFKC),
// letter case (simple case folding, and what strings.ToUpper and strings.ToLower
// take for the same: a dotless i is an i), and Unicode white space at the ends.
// It removes nothing else. It returns text that is not valid UTF-8 as it is. A
// guard refuses names with invisible characters before it calls Normalize: see
// Config.Normalize.
func Normalize(username string) string {
	folded, err := keyfuncs.FoldCase(strings.ToUpper(norm.NFKC.String(username)))
	if err != nil {
		return username
	}
	// Folding may undo the form, and takes capitals for the simplest letters.
	trimmed, _ := keyfuncs.TrimSpace(norm.NFKC.String(strings.ToLower(folded)))
	return trimmed
}

// BasicUser keys by the user of HTTP Basic authentication (RFC 7617), as a
// further source of Config.Sources. A request without such a header has none. A
// header that is given twice or cannot be read is a [core.BadRequestError]: a
// handler that reads it more leniently must not find a name while the guard
// takes another source's. A client that authenticates so does it with every
// request: Config.Methods must name the methods, such as GET, and
// Config.Attempts must leave room for them.
func BasicUser() core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		lines := r.HeaderValues("Authorization")
		if len(lines) > 1 {
			return dst, errBasicTwice
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
	errNoUsername   = &core.BadRequestError{Detail: "the username is missing, or cannot be read"}
	errTwoUsernames = &core.BadRequestError{Detail: "the request names two different usernames"}
	errBasic        = &core.BadRequestError{Detail: "the header Authorization cannot be read"}
	errBasicTwice   = &core.BadRequestError{Detail: "the header Authorization is given twice"}
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
		plain, err := keyfuncs.PlainName(string(raw))
		if err != nil {
			return "", c.fault(err)
		}
		name := c.Normalize(plain)
		if found && name != account {
			return "", errTwoUsernames
		}
		account, found = name, true
	}
	if account == "" && !c.AllowUnnamed {
		if c.Field != "" {
			return "", &core.BadRequestError{Detail: fmt.Sprintf("the field %q is missing or empty", c.Field)}
		}
		return "", errNoUsername
	}
	return account, nil
}

// fault adds the name of the field to what is wrong with the username.
func (c *Config) fault(err error) error {
	var told *core.BadRequestError
	if c.Field == "" || !errors.As(err, &told) {
		return err
	}
	return &core.BadRequestError{Detail: fmt.Sprintf("the field %q: %s", c.Field, told.Detail)}
}

// refuses reports whether a source finds the request at fault.
func (c *Config) refuses(r core.Request) bool {
	return slices.ContainsFunc(c.Sources, func(source core.KeyFunc) bool {
		_, err := source(nil, r)
		return errors.Is(err, core.ErrBadRequest)
	})
}
