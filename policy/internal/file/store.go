package file

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/regularfile"
	"github.com/floodgate-go/floodgate/policy/internal/words"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	"github.com/floodgate-go/floodgate/stores/resilient"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// Store is the shared store of a file: exactly one of Redis, Memcached and Synced is not nil.
type Store struct {
	at        value
	Redis     *Redis
	Memcached *Memcached
	Synced    *Synced
	OnFailure resilient.Mode
	Instances int
}

// Redis is a Redis server or a cluster.
type Redis struct {
	Addresses      []string
	User, Password Secret
	DB             int
	TLS, Cluster   bool
	Timeout        time.Duration
}

// Memcached is memcached servers.
type Memcached struct {
	Servers []string
	Timeout time.Duration
}

// Synced is a store that counts in the process and exchanges with Redis.
type Synced struct {
	Redis    *Redis
	Interval time.Duration
}

const (
	defaultTimeout  = 100 * time.Millisecond
	defaultInterval = 100 * time.Millisecond
	longestTimeout  = time.Minute
)

// At returns the place of the store section.
func (s *Store) At() Place { return s.at.place() }

func (r *reader) store(v value) (*Store, bool) {
	s := &Store{at: v, Instances: 1}
	m, ok := r.fields(v, "a mapping with redis, memcached or synced",
		field{"redis", into(&s.Redis, r.redis)},
		field{"memcached", into(&s.Memcached, r.memcached)},
		field{"synced", into(&s.Synced, r.synced)},
		field{"on-failure", into(&s.OnFailure, choice(r, word[resilient.Mode]{"local", resilient.Local}, word[resilient.Mode]{"fail-open", resilient.FailOpen}, word[resilient.Mode]{"fail-closed", resilient.FailClosed}))},
		field{"instances", into(&s.Instances, whole(r, 1, resilient.MaxInstances))},
	)
	switch {
	case !ok, !m.one([]string{"redis", "memcached", "synced"}, "a file has one store", "names no store", "want redis, memcached or synced"):
	case m.has("instances") && s.OnFailure != resilient.Local:
		r.bad(m.given["instances"], "only on-failure: local divides the limits by it", "leave it out")
	case m.has("synced"):
		for _, name := range []string{"on-failure", "instances"} {
			if m.has(name) {
				r.bad(m.given[name], "a synced store counts in the process anyway", "leave it out")
			}
		}
	}
	return s, ok
}

func (r *reader) redis(v value) (*Redis, bool) {
	s := &Redis{Timeout: defaultTimeout}
	m, ok := r.fields(v, "a mapping with address",
		field{"address", into(&s.Addresses, r.addresses)},
		field{"user", into(&s.User, r.secret)},
		field{"password", into(&s.Password, r.secret)},
		field{"db", into(&s.DB, whole(r, 0, 1<<20))},
		field{"tls", into(&s.TLS, r.boolean)},
		field{"cluster", into(&s.Cluster, r.boolean)},
		field{"timeout", into(&s.Timeout, r.timeout)},
	)
	if !ok {
		return s, false
	}
	m.requires("want host:port", "address")
	if s.Cluster && s.DB != 0 {
		r.bad(m.given["db"], fmt.Sprintf("%d: a cluster has only database 0", s.DB), "")
	}
	if !s.Cluster && len(s.Addresses) > 1 {
		r.bad(m.given["address"], "several addresses are those of a cluster", "write cluster: true, or one address")
	}
	return s, true
}

func (r *reader) memcached(v value) (*Memcached, bool) {
	s := &Memcached{Timeout: defaultTimeout}
	m, ok := r.fields(v, "a mapping with servers",
		field{"servers", into(&s.Servers, r.addresses)},
		field{"timeout", into(&s.Timeout, r.timeout)},
	)
	if ok {
		m.requires("want a list of host:port", "servers")
	}
	return s, ok
}

func (r *reader) synced(v value) (*Synced, bool) {
	s := &Synced{Interval: defaultInterval}
	m, ok := r.fields(v, "a mapping with redis and interval",
		field{"redis", into(&s.Redis, r.redis)},
		field{"interval", func(v value) {
			d, ok := r.duration("a length of time such as 100ms")(v)
			if s.Interval = d; ok && (d < synced.MinInterval || d > time.Hour) {
				r.bad(v, fmt.Sprintf("%v: want 1ms to 1h", d), "")
			}
		}},
	)
	if ok {
		m.requires("it names the server that holds the shared counters", "redis")
	}
	return s, ok
}

// timeout reads how long a request waits for a server.
func (r *reader) timeout(v value) (time.Duration, bool) {
	d, ok := r.duration("a length of time such as 100ms")(v)
	if d > longestTimeout {
		r.bad(v, fmt.Sprintf("%v: at most %v", d, longestTimeout), "a request waits for no answer longer than this")
	}
	return d, ok
}

// addresses reads one host:port or a list of them.
func (r *reader) addresses(v value) (all []string, ok bool) {
	before := len(r.errs)
	for _, item := range r.items(v, 1000, "a list of host:port", true) {
		text, ok := r.text(item, "an address such as 10.0.0.1:6379")
		if !ok {
			continue
		}
		host, port, err := net.SplitHostPort(text)
		shown := strconv.Quote(words.Shown(text))
		switch {
		case strings.ContainsAny(text, "/@"):
			r.bad(item, shown+": want host:port", "write the host and the port alone; user, password, db and tls are fields beside it")
		case err != nil || host == "" || port == "":
			r.bad(item, shown+": want host:port", "write the port too, as in redis:6379 or memcached:11211")
		case slices.Contains(all, text):
			r.bad(item, shown+": stands twice", "")
		default:
			all = append(all, text)
		}
	}
	return all, len(r.errs) == before
}

// Secret is a text that is in the policy file, in an environment variable or in a file of its own.
type Secret struct {
	at              value
	Word, Env, File string // one of them is not empty
}

// At returns the place of the secret.
func (s Secret) At() Place { return s.at.place() }

// variable matches text that a shell would replace.
var variable = regexp.MustCompile(`^\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)$`)

// secret reads a text, or the name of its variable or file. No message contains the text.
func (r *reader) secret(v value) (Secret, bool) {
	const want = "text, {env: NAME} or {file: PATH}"
	s := Secret{at: v}
	if isMapping(v) {
		m, ok := r.fields(v, want,
			field{"env", into(&s.Env, r.wanted("the name of a variable"))},
			field{"file", into(&s.File, r.wanted("the path of a file"))},
		)
		return s, m.one([]string{"env", "file"}, "a secret is in one place", "names no place", "want env or file") && ok
	}
	s.Word = kindText(v.node)
	switch {
	case isList(v) || isNull(v.node):
		r.bad(v, describe(v.node)+": want "+want, "")
	case s.Word == "":
		r.bad(v, "is not text: want "+want, "put text that looks like something else in quotes")
	case variable.MatchString(s.Word):
		r.bad(v, "is the name of a variable, which is not replaced by its value", "write {env: NAME}, with the name without the dollar sign")
	default:
		return s, true
	}
	return s, false
}

// Text returns the secret's text. It reads the file or the environment.
func (s Secret) Text() (string, error) {
	switch {
	case s.Env != "":
		text, found := os.LookupEnv(s.Env)
		if !found {
			return "", fmt.Errorf("the variable %s is not in the environment", s.Env)
		}
		return text, nil
	case s.File != "":
		const most = 64 << 10
		text, err := regularfile.Read(s.File, most)
		if err != nil {
			return "", err
		}
		if len(text) > most {
			return "", fmt.Errorf("%s is longer than 64 KiB: want a file with the text alone", s.File)
		}
		return strings.TrimRight(string(text), "\r\n"), nil
	default:
		return s.Word, nil
	}
}

// Identity returns a text that is equal for equal store sections, wherever they stand.
func (s *Store) Identity() string {
	text, err := json.Marshal(s) // the fields without a name in capitals are places
	if err != nil {
		panic(err) // it has texts and numbers only
	}
	return string(text)
}

// serves returns why the store cannot count a limit, "" if it can.
func (s *Store) serves(l core.Limit) (problem, hint string) {
	if s.Synced != nil && l.Zone != nil {
		return fmt.Sprintf("%v: a synced store does not count by the calendar of a time zone", l), "write fixed_window aligned in place of the zone: a day then begins at midnight UTC"
	}
	if s.Synced != nil && (!l.Aligned || l.Algorithm != core.FixedWindow && l.Algorithm != core.SlidingWindow) {
		return fmt.Sprintf("%v: a synced store counts aligned fixed_window and sliding_window limits only", l), "write aligned behind the limit"
	}
	if life, most := l.Lifetime(), memcachedstore.LongestLifetime; s.Memcached != nil && life > most {
		if l.Zone != nil {
			hint = "write week, or count in Redis"
		}
		return fmt.Sprintf("%v: its hits count for %v, and a store in memcached keeps them for at most %v", l, life, most), hint
	}
	return "", ""
}
