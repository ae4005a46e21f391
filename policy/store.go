package policy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	"github.com/floodgate-go/floodgate/stores/resilient"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// storeSpec is what a file says of its shared store.
type storeSpec struct {
	at        value
	kind      string // of storeKinds
	redis     redisSpec
	postgres  *postgresSpec // of synced; nil: redis
	servers   []string      // of memcached
	timeout   time.Duration
	interval  time.Duration // of synced
	meanwhile resilient.Meanwhile
	instances int
	askAlways bool // about denied keys too
}

type redisSpec struct {
	addresses      []string
	user, password secret
	db             int
	tls, cluster   bool
}

// secret is a text that may stand elsewhere: in a variable of the environment,
// or in a file.
type secret struct {
	at              value
	text, env, file string
}

var storeKinds = []string{"redis", "memcached", "synced"}

const (
	defaultTimeout  = 100 * time.Millisecond
	defaultInterval = 100 * time.Millisecond
	longestTimeout  = time.Minute
)

// identity is what makes two store sections the same.
func (s *storeSpec) identity() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%q %q %q %q %q %d %t %t %q %d %d %d %d %t", s.kind, s.postgres.identity(), s.redis.addresses, s.redis.user.words(), s.redis.password.words(), s.redis.db,
		s.redis.tls, s.redis.cluster, s.servers, s.timeout, s.interval, s.meanwhile, s.instances, s.askAlways)
}

var meanwhiles = map[string]resilient.Meanwhile{"in-process": resilient.InProcess, "open": resilient.Open, "closed": resilient.Closed}

// store reads the store section.
func (r *reader) store(v value) *storeSpec {
	s := &storeSpec{at: v, timeout: defaultTimeout, interval: defaultInterval, instances: 1}
	given := r.mapping(v, "a mapping with redis, memcached or synced",
		field{"redis", func(v value) { r.redis(v, s) }},
		field{"memcached", func(v value) { r.memcached(v, s) }},
		field{"synced", func(v value) { r.synced(v, s) }},
		field{"meanwhile", func(v value) {
			word, _ := r.choice(v, "in-process", "open", "closed")
			s.meanwhile = meanwhiles[word]
		}},
		field{"instances", func(v value) {
			n, _ := r.integer(v, 1, resilient.MaxInstances)
			s.instances = int(n)
		}},
		field{"remember-denials", func(v value) { s.askAlways = !r.boolean(v) }},
	)
	if given == nil {
		return s // so that policies may be shared
	}
	for _, kind := range storeKinds {
		if !has(given, kind) {
			continue
		}
		if s.kind != "" {
			r.bad(given[kind], s.kind+" and "+kind+" exclude each other", "a file has one store")
		}
		s.kind = kind
	}
	switch {
	case s.kind == "":
		r.bad(v, "names no store", "want redis, memcached or synced")
	case s.meanwhile != resilient.InProcess && has(given, "instances"):
		r.bad(given["instances"], "only meanwhile: in-process divides the limits by it", "leave it out")
	case s.kind == "synced":
		for _, name := range []string{"meanwhile", "instances", "remember-denials"} {
			if has(given, name) {
				r.bad(given[name], "a synced store counts in the process anyway", "leave it out")
			}
		}
	}
	return s
}

// redis reads where a Redis is.
func (r *reader) redis(v value, s *storeSpec) {
	to := &s.redis
	given := r.mapping(v, "a mapping with address",
		field{"address", func(v value) { to.addresses = r.addresses(v) }},
		field{"user", func(v value) { to.user = r.secret(v) }},
		field{"password", func(v value) { to.password = r.secret(v) }},
		field{"db", func(v value) {
			n, _ := r.integer(v, 0, 1<<20)
			to.db = int(n)
		}},
		field{"tls", func(v value) { to.tls = r.boolean(v) }},
		field{"cluster", func(v value) { to.cluster = r.boolean(v) }},
		field{"timeout", func(v value) { s.timeout = r.timeout(v) }},
	)
	if given == nil {
		return
	}
	if !has(given, "address") {
		r.bad(v, "the field address is missing", "want host:port")
	}
	if to.cluster && to.db != 0 {
		r.bad(given["db"], fmt.Sprintf("%d: a cluster has only database 0", to.db), "")
	}
	if !to.cluster && len(to.addresses) > 1 {
		r.bad(given["address"], "several addresses are those of a cluster", "write cluster: true, or one address")
	}
}

func (r *reader) memcached(v value, s *storeSpec) {
	given := r.mapping(v, "a mapping with servers",
		field{"servers", func(v value) { s.servers = r.addresses(v) }},
		field{"timeout", func(v value) { s.timeout = r.timeout(v) }},
	)
	if given != nil && !has(given, "servers") {
		r.bad(v, "the field servers is missing", "want a list of host:port")
	}
}

func (r *reader) synced(v value, s *storeSpec) {
	given := r.mapping(v, "a mapping with redis or postgres, and interval",
		field{"redis", func(v value) { r.redis(v, s) }},
		field{"postgres", func(v value) { r.postgres(v, s) }},
		field{"interval", func(v value) {
			d, ok := r.window(v, "a length of time such as 100ms")
			if ok && (d < synced.MinInterval || d > time.Hour) {
				r.bad(v, fmt.Sprintf("%v: want 1ms to 1h", d), "")
			}
			s.interval = d
		}},
	)
	switch {
	case given == nil:
	case has(given, "redis") && has(given, "postgres"):
		r.bad(given["postgres"], "redis and postgres exclude each other", "a synced store exchanges with one server")
	case !has(given, "redis") && !has(given, "postgres"):
		r.bad(v, "the field redis or postgres is missing", "it names the server that holds the shared counters")
	}
}

func (r *reader) timeout(v value) time.Duration {
	d, ok := r.window(v, "a length of time such as 100ms")
	if ok && d > longestTimeout {
		r.bad(v, fmt.Sprintf("%v: at most %v", d, longestTimeout), "a request waits for no answer longer than this")
	}
	return d
}

// addresses reads one host:port or a list of them.
func (r *reader) addresses(v value) []string {
	opened, ok := r.open(v)
	if !ok {
		return nil
	}
	items := []value{v}
	if isList(opened) {
		items = r.list(opened, 1000, "a list of host:port")
	}
	var all []string
	for _, item := range items {
		text, ok := r.text(item, "an address such as 10.0.0.1:6379")
		if !ok {
			continue
		}
		host, port, err := net.SplitHostPort(text)
		switch {
		case strings.Contains(text, "://"):
			r.bad(item, fmt.Sprintf("%q: is a URL: want host:port", shorten(text)), "")
		case err != nil || host == "" || port == "":
			r.bad(item, fmt.Sprintf("%q: want host:port", shorten(text)), "")
		case slices.Contains(all, text):
			r.bad(item, fmt.Sprintf("%q: stands twice", text), "")
		default:
			all = append(all, text)
		}
	}
	return all
}

// secret reads a text, or where it is to be found: {env: NAME} or {file: PATH}.
// No message has the text in it.
func (r *reader) secret(v value) secret {
	s := secret{at: v}
	opened, ok := r.open(v)
	if !ok {
		return s
	}
	const want = "text, {env: NAME} or {file: PATH}"
	if !isMapping(opened) {
		if isList(opened) || isNull(opened.node) {
			r.bad(v, kind(opened.node)+": want "+want, "")
		} else if s.text = kindText(opened.node); s.text == "" {
			r.bad(v, "is not text: want "+want, "text that looks like something else stands in quotes")
		}
		return s
	}
	given := r.mapping(opened, want,
		field{"env", func(v value) { s.env, _ = r.text(v, "the name of a variable") }},
		field{"file", func(v value) { s.file, _ = r.text(v, "the path of a file") }},
	)
	if given != nil && len(given) != 1 {
		r.bad(v, "want either env or file", "")
	}
	return s
}

func (s secret) words() []string { return []string{s.text, s.env, s.file} }

// value returns the secret's text.
func (s secret) value() (string, error) {
	switch {
	case s.env != "":
		text, found := os.LookupEnv(s.env)
		if !found {
			return "", fmt.Errorf("the variable %s is not in the environment", s.env)
		}
		return text, nil
	case s.file != "":
		text, err := os.ReadFile(s.file) //nolint:gosec // the operator has written which file
		if err != nil {
			return "", err
		}
		if len(text) > 64<<10 {
			return "", errors.New("the file is longer than 64 KiB")
		}
		return strings.TrimRight(string(text), "\r\n"), nil
	default:
		return s.text, nil
	}
}

// serves returns why the store cannot count a limit, "" where it can.
func (s *storeSpec) serves(l core.Limit) (problem, hint string) {
	if s.kind == "synced" && (!l.Aligned || l.Algorithm != core.FixedWindow && l.Algorithm != core.SlidingWindow) {
		return fmt.Sprintf("%v: a synced store counts aligned fixed_window and sliding_window limits only", l), "write aligned behind the limit"
	}
	if life, most := l.Guarantees().Lifetime, memcachedstore.LongestLifetime(); s.kind == "memcached" && life > most {
		return fmt.Sprintf("%v: its hits count for %s, and a store in memcached keeps them for at most %s", l, shortWindow(life), shortWindow(most)), ""
	}
	return "", ""
}
