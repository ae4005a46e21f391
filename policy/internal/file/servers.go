package file

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/internal/regularfile"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// Redis is a Redis server or a cluster.
type Redis struct {
	Addresses      []string
	User, Password Secret
	DB             int
	TLS, Cluster   bool
	Timeout        time.Duration
}

func newRedis(value) *Redis { return &Redis{Timeout: defaultTimeout} }

// redisMapping returns the table of redis.
func redisMapping() *mapping[*Redis] {
	return &mapping[*Redis]{
		name: "redis", want: "a mapping with address", about: "A Redis server or cluster.",
		fields: []field[*Redis]{
			{
				name: "address", required: true, hint: "want host:port", example: "redis:6379",
				about: "The server, or some servers of a cluster.",
				value: set(addresses(), func(s **Redis) *[]string { return &(*s).Addresses }),
			}, {
				name: "user", example: "floodgate", without: "the Redis user `default`",
				about: "The user.",
				value: set(secret(), func(s **Redis) *Secret { return &(*s).User }),
			}, {
				name: "password", example: "{env: REDIS_PASSWORD}",
				about: "The password.",
				value: set(secret(), func(s **Redis) *Secret { return &(*s).Password }),
			}, {
				name: "db", initial: "0", example: "2",
				about: "The number of the database; a cluster has only 0.",
				value: set(whole[int](0, 1<<20), func(s **Redis) *int { return &(*s).DB }),
			}, {
				name: "tls", initial: "false", example: "true",
				about: "If true, connections use TLS.",
				value: set(boolean(), func(s **Redis) *bool { return &(*s).TLS }),
			}, {
				name: "cluster", initial: "false", example: "true",
				about: "If true, the servers are those of a Redis cluster.",
				value: set(boolean(), func(s **Redis) *bool { return &(*s).Cluster }),
			},
			timeoutField(func(s **Redis) *time.Duration { return &(*s).Timeout }),
		},
		check: func(m filled, p **Redis) {
			r, s := m.r, *p
			if s.Cluster && s.DB != 0 {
				r.bad(m.given["db"], fmt.Sprintf("%d: a cluster has only database 0", s.DB), "")
			}
			if !s.Cluster && len(s.Addresses) > 1 {
				r.bad(m.given["address"], "several addresses are those of a cluster", "write cluster: true, or one address")
			}
		},
	}
}

// Memcached is memcached servers.
type Memcached struct {
	Servers []string
	Timeout time.Duration
}

func newMemcached(value) *Memcached { return &Memcached{Timeout: defaultTimeout} }

// memcachedMapping returns the table of memcached.
func memcachedMapping() *mapping[*Memcached] {
	return &mapping[*Memcached]{
		name: "memcached", want: "a mapping with servers", about: "Memcached servers.",
		fields: []field[*Memcached]{
			{
				name: "servers", required: true, hint: "want a list of host:port", example: "['a:11211', 'b:11211']",
				about: "The servers; each holds a part of the counters.",
				value: set(addresses(), func(s **Memcached) *[]string { return &(*s).Servers }),
			},
			timeoutField(func(s **Memcached) *time.Duration { return &(*s).Timeout }),
		},
	}
}

// Postgres is the PostgreSQL server of a synced store.
type Postgres struct {
	at             value
	Address        string
	User, Password Secret
	Database       string
	TLS            bool
	Timeout        time.Duration
}

func newPostgres(v value) *Postgres { return &Postgres{at: v, Timeout: defaultTimeout} }

// postgresMapping returns the table of postgres.
func postgresMapping() *mapping[*Postgres] {
	const missing = "want address, user and database"
	return &mapping[*Postgres]{
		name: "postgres", want: "a mapping with address, user and database", about: "A PostgreSQL server.",
		fields: []field[*Postgres]{
			{
				name: "address", required: true, hint: missing, example: "db:5432",
				about: "The server.",
				value: then(addresses(), func(r *reader, v value, s **Postgres, all []string) {
					if (*s).Address = all[0]; len(all) > 1 {
						r.bad(v, fmt.Sprintf("%d addresses: want one host:port", len(all)), "name the primary, or a proxy that leads to it")
					}
				}),
			}, {
				name: "user", required: true, hint: missing, example: "limits",
				about: "The user.",
				value: set(secret(), func(s **Postgres) *Secret { return &(*s).User }),
			}, {
				name: "password", example: "{file: /run/secrets/postgres}",
				about: "The password.",
				value: set(secret(), func(s **Postgres) *Secret { return &(*s).Password }),
			}, {
				name: "database", required: true, hint: missing, example: "app",
				about: "The name of the database.",
				value: set(text("the name of a database"), func(s **Postgres) *string { return &(*s).Database }),
			}, {
				name: "tls", initial: "false", example: "true",
				about: "If true, connections use TLS and verify the server's name.",
				value: set(boolean(), func(s **Postgres) *bool { return &(*s).TLS }),
			},
			timeoutField(func(s **Postgres) *time.Duration { return &(*s).Timeout }),
		},
	}
}

// timeoutField is the field timeout of each server.
func timeoutField[T any](to func(*T) *time.Duration) field[T] {
	return field[T]{
		name: "timeout", initial: words.Duration(defaultTimeout), example: "50ms",
		about: "How long a request waits for the server's answer, at most `1m`.",
		value: then(duration("a length of time such as 100ms"), func(r *reader, v value, t *T, d time.Duration) {
			if *to(t) = d; d > longestTimeout {
				r.bad(v, fmt.Sprintf("%v: at most %v", d, longestTimeout), "a request waits for no answer longer than this")
			}
		}),
	}
}

// addresses is one host:port or a list of them.
func addresses() kind[[]string] {
	const most = 1000
	one := shape{"host:port", func(d *definitions) object {
		return d.ref("address", func() object { return object{{"type", "string"}, {"pattern", "^[^/@]+:[^:/@]+$"}} })
	}, nil}
	look := oneOf("host:port, or a list of these", one, listOf(one, most, true))
	return kind[[]string]{look, func(r *reader, v value) (all []string, ok bool) {
		before := len(r.errs)
		for _, item := range r.items(v, most, "a list of host:port") {
			text, ok := r.text(item, "an address such as 10.0.0.1:6379")
			if !ok {
				continue
			}
			host, port, err := net.SplitHostPort(text)
			shown := strconv.Quote(words.Shown(text))
			switch {
			case strings.Contains(text, "://"):
				r.bad(item, shown+": is a URL: want host:port", "write the host and the port alone; user, password, db and tls are fields beside it")
			case strings.Contains(text, "@"):
				r.bad(item, shown+": has an @: want host:port", "write the host and the port alone; user and password are fields beside it")
			case err != nil || host == "" || port == "":
				r.bad(item, shown+": want host:port", "write the port too, as in redis:6379, memcached:11211 or db:5432")
			case slices.Contains(all, text):
				r.bad(item, shown+": stands twice", "")
			default:
				all = append(all, text)
			}
		}
		return all, len(r.errs) == before
	}}
}

// Secret is a text that may stand elsewhere: in a variable of the environment,
// or in a file.
type Secret struct {
	at              value
	Word, Env, File string // one of them is not empty
}

// secretMapping returns the table of a secret that stands elsewhere.
func secretMapping() *mapping[Secret] {
	return &mapping[Secret]{
		name: "secret", want: secretWant, about: "Where a user or a password is kept outside the file.",
		fields: []field[Secret]{
			{
				name: "env", example: "REDIS_PASSWORD",
				about: "The environment variable that has the text.",
				value: set(text("the name of a variable"), func(s *Secret) *string { return &s.Env }),
			}, {
				name: "file", example: "/run/secrets/redis",
				about: "The file that has the text; a line break at its end is ignored.",
				value: set(text("the path of a file"), func(s *Secret) *string { return &s.File }),
			},
		},
		together: "Exactly one of `env` and `file` is given.",
		check: func(m filled, _ *Secret) {
			m.one([]string{"env", "file"}, "a secret is in one place", "names no place", "want env or file")
		},
	}
}

const secretWant = "text, {env: NAME} or {file: PATH}"

// secret is a text, or where it is to be found. No message has the text in it.
func secret() kind[Secret] {
	elsewhere := secretMapping().kind(func(v value) Secret { return Secret{at: v} })
	whole := oneOf("text, or a [secret](#secret)", text("").shape, elsewhere.shape)
	look := shape{whole.words, func(d *definitions) object {
		return d.ref("secretOrText", func() object { return whole.schema(d) })
	}, whole.sections}
	return kind[Secret]{look, func(r *reader, v value) (Secret, bool) {
		s := Secret{at: v}
		opened, ok := r.open(v)
		if !ok {
			return s, false
		}
		if isMapping(opened) {
			return elsewhere.read(r, opened)
		}
		if isList(opened) || isNull(opened.node) {
			r.bad(v, describe(opened.node)+": want "+secretWant, "")
			return s, false
		}
		if s.Word = kindText(opened.node); s.Word == "" {
			r.bad(v, "is not text: want "+secretWant, "put text that looks like something else in quotes")
		}
		if variable.MatchString(s.Word) {
			r.bad(v, "is the name of a variable, which is not replaced by its value", "write {env: NAME}, with the name without the dollar sign")
			return s, false
		}
		return s, s.Word != ""
	}}
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
