package redisstore

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
)

// serverURL is a URL whose user and password have been taken out, so that no error
// about the rest can quote them.
type serverURL struct {
	url.URL
	user, password string
	// misplaced is true if an @ stands behind the host. A password with a character
	// that is not escaped is then perhaps read as host, port, path or parameters.
	misplaced bool
}

// Errors that quote nothing, because the text may be a password.
var (
	errControl   = errors.New("has a control character: write its escape, such as %0A")
	errNoServer  = errors.New("host and port cannot be read: want a URL such as redis://user:password@127.0.0.1:6379/0")
	errUserinfo  = errors.New("user or password cannot be read: " + escapes)
	errMisplaced = errors.New("an @ stands behind the host: if it is that before the host, then user or password has a character that is not escaped: " + escapes + "; a parameter addr is host:port alone")
	errFragment  = errors.New("has a #: if it is in user or password, " + escapes)
	errParameter = errors.New("the parameters, which begin at the ?, cannot be read: write %25 for % and %3B for ;, and %3F for a ? in user or password")
	errAddr      = errors.New("parameter \"addr\" has an @: want host:port; the user and the password before the first host are those of all servers")
)

const escapes = "write %2F for /, %23 for #, %3F for ?, %25 for % and %40 for @"

// parseURL parses a URL. Its error quotes no user and no password.
func parseURL(text string) (*serverURL, error) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return nil, errControl
	}
	scheme, rest, found := strings.Cut(text, "://")
	if !found && strings.Contains(text, "@") {
		return nil, errNoServer
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	s := &serverURL{misplaced: strings.Contains(rest[len(authority):], "@")}
	at := strings.LastIndex(authority, "@")
	if at >= 0 {
		user, err := url.Parse("redis://" + authority[:at] + "@host")
		if err != nil {
			return nil, errUserinfo
		}
		s.user = user.User.Username()
		s.password, _ = user.User.Password()
		text = scheme + "://" + rest[at+1:]
	}
	u, err := url.Parse(text)
	switch {
	case err != nil && s.misplaced:
		return nil, errMisplaced
	case err != nil && at < 0: // what is taken for the host may be a password
		return nil, errNoServer
	case err != nil:
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err // without the text
		}
		return nil, err
	}
	s.URL = *u
	return s, s.check()
}

// check refuses what go-redis does not look at, and what it quotes.
func (u *serverURL) check() error {
	parameters, err := url.ParseQuery(u.RawQuery)
	switch {
	case u.Scheme != "unix" && strings.Contains(u.Path, "@"), u.Scheme == "unix" && u.Host != "" && u.misplaced:
		return errMisplaced
	case u.Fragment != "":
		return errFragment
	case err != nil:
		return errParameter
	}
	for _, addr := range parameters["addr"] {
		if strings.Contains(addr, "@") {
			return errAddr
		}
	}
	return nil
}
