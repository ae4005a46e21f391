package redisstore

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
)

// NewClient returns the client that a URL describes, for programs that take
// the address of their Redis as text:
//
//	redis://user:password@127.0.0.1:6379/0
//	rediss://127.0.0.1:6380                              with TLS
//	unix:///run/redis.sock?db=0
//	redis+cluster://10.0.0.1:6379?addr=10.0.0.2:6379     also rediss+cluster
//	redis+sentinel://10.0.0.1:26379/0?master=mymaster&addr=10.0.0.2:26379
//
// In a user and a password, write %2F for /, %23 for #, %3F for ? and %25 for %, or make the
// text with [url.UserPassword]. Elsewhere, write %40 for @.
//
// The parameters are those of [redis.ParseURL] and [redis.ParseClusterURL]. With Sentinel they are
// the primary's name (master), further Sentinels (addr), sentinel_username and sentinel_password. A
// server that cannot be reached is dialed once for each command, unless dialer_retries asks for
// more. The client ends a command by the deadline of its context (ContextTimeoutEnabled). NewClient
// does not connect. The caller closes the client. The error wraps [core.ErrConfig], and never
// contains a password.
func NewClient(text string) (redis.UniversalClient, error) {
	u, err := parseURL(text)
	if err != nil {
		return nil, badURL(err)
	}
	client, err := u.client()
	if err != nil {
		return nil, badURL(err)
	}
	return client, nil
}

// client makes the client. Its errors may quote all of the URL but user and
// password.
func (u *serverURL) client() (redis.UniversalClient, error) {
	switch u.Scheme {
	case "redis", "rediss", "unix":
		o, err := redis.ParseURL(u.String())
		if err != nil {
			return nil, err
		}
		if o.DB < 0 {
			return nil, fmt.Errorf("database %d: want 0 or more", o.DB)
		}
		o.Username, o.Password = u.user, u.password
		o.DialerRetries = max(o.DialerRetries, dials)
		o.ContextTimeoutEnabled = true
		return redis.NewClient(o), nil
	case "redis+cluster", "rediss+cluster":
		server := u.URL
		server.Scheme = strings.TrimSuffix(u.Scheme, "+cluster")
		o, err := redis.ParseClusterURL(server.String())
		if err != nil {
			return nil, err
		}
		o.Username, o.Password = u.user, u.password
		o.DialerRetries = max(o.DialerRetries, dials)
		o.ContextTimeoutEnabled = true
		return redis.NewClusterClient(o), nil
	case "redis+sentinel":
		o, err := u.sentinelOptions()
		if err != nil {
			return nil, err
		}
		o.DialerRetries = max(o.DialerRetries, dials)
		o.ContextTimeoutEnabled = true
		return redis.NewFailoverClient(o), nil
	}
	return nil, fmt.Errorf("scheme %q: want redis, rediss, unix, redis+cluster, rediss+cluster or redis+sentinel", u.Scheme)
}

// dials is how often a client of NewClient dials a server for one command, if
// the URL does not ask for more. The default of go-redis is five times, in 400
// ms: longer than [DefaultTimeout], so that the error would not tell that
// nothing listens.
const dials = 1

func badURL(err error) error { return fmt.Errorf("%w: Redis URL: %w", core.ErrConfig, err) }

func (u *serverURL) sentinelOptions() (*redis.FailoverOptions, error) {
	o := &redis.FailoverOptions{SentinelAddrs: []string{withPort(u.Host, "26379")}, Username: u.user, Password: u.password}
	if db := strings.Trim(u.Path, "/"); db != "" {
		var err error
		if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
			return nil, fmt.Errorf("database %q: want a number, 0 or more", db)
		}
	}
	for name, values := range u.Query() {
		if name != "addr" && len(values) > 1 {
			return nil, fmt.Errorf("parameter %q is given twice", name)
		}
		switch value := values[0]; name {
		case "master":
			o.MasterName = value
		case "addr":
			for _, addr := range values {
				o.SentinelAddrs = append(o.SentinelAddrs, withPort(addr, "26379"))
			}
		case "sentinel_username":
			o.SentinelUsername = value
		case "sentinel_password":
			o.SentinelPassword = value
		default:
			return nil, fmt.Errorf("parameter %q: want master, addr, sentinel_username or sentinel_password", name)
		}
	}
	if o.MasterName == "" {
		return nil, errors.New("parameter \"master\" is missing: the name that the Sentinels know the primary by")
	}
	return o, nil
}

// withPort adds the default port if there is none.
func withPort(host, port string) string {
	if u := (&url.URL{Host: host}); u.Port() == "" {
		return strings.TrimSuffix(host, ":") + ":" + port
	}
	return host
}

// serverURL is a URL whose user and password have been taken out, so that no error
// about the rest can quote them.
type serverURL struct {
	url.URL
	user, password string
}

// Errors that quote nothing, because the text may be a password.
var (
	errControl   = errors.New("has a control character: write its escape, such as %0A")
	errNoServer  = errors.New("host and port cannot be read: want a URL such as redis://user:password@127.0.0.1:6379/0")
	errUserinfo  = errors.New("user or password cannot be read: write %2F for /, %23 for #, %3F for ?, %25 for %, and %40 for an @ that is not the one before the host")
	errParameter = errors.New("the parameters, which begin at the ?, cannot be read: write %25 for % and %3B for ;, and %3F for a ? in user or password")
	errAddr      = errors.New("parameter \"addr\" has an @: want host:port; the user and the password before the first host are those of all servers")
)

// parseURL parses a URL. The last @ is the one before the host. The error quotes no user and
// no password.
func parseURL(text string) (*serverURL, error) {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return nil, errControl
	}
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return nil, errNoServer
	}
	s := new(serverURL)
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		u, err := url.Parse("redis://" + rest[:at] + "@host")
		if err != nil || strings.ContainsAny(rest[:at], "/?#") {
			return nil, errUserinfo
		}
		s.user = u.User.Username()
		s.password, _ = u.User.Password()
		rest = rest[at+1:]
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil {
		return nil, errNoServer
	}
	if u.Fragment != "" { // it may be the rest of a password
		return nil, errUserinfo
	}
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errParameter
	}
	for _, addr := range parameters["addr"] {
		if strings.Contains(addr, "@") {
			return nil, errAddr
		}
	}
	s.URL = *u
	return s, nil
}
