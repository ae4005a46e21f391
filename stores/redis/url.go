package redisstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

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
// In a user and a password, write %2F for /, %23 for #, %3F for ?, %25 for % and %40 for @, or
// make the text with [url.UserPassword]. Elsewhere, write %40 for @.
//
// The parameters are those of [redis.ParseURL] and [redis.ParseClusterURL]. With Sentinel they are
// the primary's name (master), further Sentinels (addr), sentinel_username and sentinel_password. A
// server that cannot be reached is dialed once for each command, unless the URL of a cluster has
// dialer_retries. The client ends a command by its context's deadline (ContextTimeoutEnabled). NewClient
// does not connect. The caller closes the client. The error wraps [core.ErrConfig], and never
// contains a password.
func NewClient(text string) (redis.UniversalClient, error) {
	client, err := clientOf(text)
	if err != nil {
		return nil, fmt.Errorf("%w: Redis URL: %w", core.ErrConfig, err)
	}
	return client, nil
}

// errUnreadable quotes nothing, because any part of the text may be one of a password.
var errUnreadable = errors.New("cannot be read: want a URL such as redis://user:password@127.0.0.1:6379/0, " +
	"and in user, password and parameters %2F for /, %23 for #, %3F for ?, %25 for % and %40 for @")

// dials is how often a client dials for one command. The default, five times, takes 400 ms.
const dials = 1

// clientOf makes the client. Its errors never quote the user or the password.
func clientOf(text string) (redis.UniversalClient, error) {
	u, err := url.Parse(text)
	if err != nil || u.Fragment != "" || strings.Count(text, "@") > 1 || u.User == nil && strings.Contains(text, "@") {
		return nil, errUnreadable
	}
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil || slices.ContainsFunc(parameters["addr"], func(addr string) bool { return strings.Contains(addr, "@") }) {
		return nil, errUnreadable
	}
	scheme := u.Scheme
	u.Scheme, _, _ = strings.Cut(scheme, "+")
	switch scheme {
	case "redis", "rediss", "unix":
		o, err := redis.ParseURL(u.String())
		if err != nil {
			return nil, err
		}
		o.DialerRetries, o.ContextTimeoutEnabled = dials, true
		return redis.NewClient(o), nil
	case "redis+cluster", "rediss+cluster":
		o, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, err
		}
		o.DialerRetries, o.ContextTimeoutEnabled = max(o.DialerRetries, dials), true
		return redis.NewClusterClient(o), nil
	case "redis+sentinel":
		o, err := sentinelOptions(*u, parameters)
		if err != nil {
			return nil, err
		}
		return redis.NewFailoverClient(o), nil
	}
	return nil, fmt.Errorf("scheme %q: want redis, rediss, unix, redis+cluster, rediss+cluster or redis+sentinel", scheme)
}

func sentinelOptions(u url.URL, parameters url.Values) (*redis.FailoverOptions, error) {
	for name := range parameters {
		if !slices.Contains([]string{"master", "addr", "sentinel_username", "sentinel_password"}, name) {
			return nil, errors.New("want no parameters but master, addr, sentinel_username and sentinel_password") // the name may be a part of a password
		}
	}
	if parameters.Get("master") == "" {
		return nil, errors.New("parameter \"master\" is missing: the name that the Sentinels know the primary by")
	}
	u.RawQuery = ""
	primary, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, err
	}
	o := &redis.FailoverOptions{
		MasterName: parameters.Get("master"), Username: primary.Username, Password: primary.Password, DB: primary.DB,
		SentinelUsername: parameters.Get("sentinel_username"), SentinelPassword: parameters.Get("sentinel_password"),
		DialerRetries: dials, ContextTimeoutEnabled: true,
	}
	for _, addr := range append([]string{u.Host}, parameters["addr"]...) {
		if (&url.URL{Host: addr}).Port() == "" {
			addr = net.JoinHostPort(strings.Trim(addr, "[]"), "26379")
		}
		o.SentinelAddrs = append(o.SentinelAddrs, addr)
	}
	return o, nil
}
