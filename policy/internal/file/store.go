package file

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	"github.com/floodgate-go/floodgate/stores/resilient"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// Store is the shared store of a file: exactly one of Redis, Memcached and
// Synced is not nil.
type Store struct {
	at              value
	Redis           *Redis
	Memcached       *Memcached
	Synced          *Synced
	OnFailure       resilient.Mode
	Instances       int
	RememberDenials bool
}

// Synced is a store that counts in the process and exchanges with Redis or
// Postgres: exactly one of the two is not nil.
type Synced struct {
	Redis    *Redis
	Postgres *Postgres
	Interval time.Duration
}

const (
	defaultTimeout  = 100 * time.Millisecond
	defaultInterval = 100 * time.Millisecond
	longestTimeout  = time.Minute
)

func newStore(v value) *Store { return &Store{at: v, Instances: 1, RememberDenials: true} }

// storeMapping returns the table of store.
func storeMapping() *mapping[*Store] {
	return &mapping[*Store]{
		name: "store", want: "a mapping with redis, memcached or synced", about: "The store in which shared policies count.",
		fields: []field[*Store]{
			{
				name: "redis", example: "{address: 'redis:6379'}",
				about: "Count in a Redis server or cluster.",
				value: set(redisMapping().kind(newRedis), func(s **Store) **Redis { return &(*s).Redis }),
			}, {
				name: "memcached", example: "{servers: ['a:11211', 'b:11211']}",
				about: "Count in memcached servers.",
				value: set(memcachedMapping().kind(newMemcached), func(s **Store) **Memcached { return &(*s).Memcached }),
			}, {
				name: "synced", example: "{redis: {address: 'redis:6379'}}",
				about: "Count in each process, and exchange the differences through a server.",
				value: set(syncedMapping().kind(func(value) *Synced { return &Synced{Interval: defaultInterval} }), func(s **Store) **Synced { return &(*s).Synced }),
			}, {
				name: "on-failure", initial: "local", example: "fail-open",
				about: "How requests are decided while the store does not answer: counted in the process (`local`), all allowed (`fail-open`), or all denied (`fail-closed`).",
				value: set(choice(word[resilient.Mode]{"local", resilient.Local}, word[resilient.Mode]{"fail-open", resilient.FailOpen}, word[resilient.Mode]{"fail-closed", resilient.FailClosed}),
					func(s **Store) *resilient.Mode { return &(*s).OnFailure }),
			}, {
				name: "instances", initial: "1", example: "4",
				about: "The number of processes that share the limits; each applies its part of them while the store does not answer.",
				value: set(whole[int](1, resilient.MaxInstances), func(s **Store) *int { return &(*s).Instances }),
			}, {
				name: "remember-denials", initial: "true", example: "false",
				about: "If true, a process remembers a denial for up to a second and does not ask the store again.",
				value: set(boolean(), func(s **Store) *bool { return &(*s).RememberDenials }),
			},
		},
		together: "Exactly one of `redis`, `memcached` and `synced` is given. With `on-failure: fail-open` or `on-failure: fail-closed`, there is no `instances`. " +
			"With `synced`, there is no `on-failure`, `instances` and `remember-denials`.",
		check: func(m filled, s **Store) {
			switch {
			case !m.one([]string{"redis", "memcached", "synced"}, "a file has one store", "names no store", "want redis, memcached or synced"):
			case m.has("instances") && (*s).OnFailure != resilient.Local:
				m.r.bad(m.given["instances"], "only on-failure: local divides the limits by it", "leave it out")
			case m.has("synced"):
				m.excludes([]string{"on-failure", "instances", "remember-denials"}, "a synced store counts in the process anyway", "leave it out")
			}
		},
	}
}

// syncedMapping returns the table of synced.
func syncedMapping() *mapping[*Synced] {
	return &mapping[*Synced]{
		name: "synced", want: "a mapping with redis or postgres, and interval", about: "The server through which processes exchange what they have counted.",
		fields: []field[*Synced]{
			{
				name: "redis", example: "{address: 'redis:6379'}",
				about: "Exchange through a Redis server or cluster.",
				value: set(redisMapping().kind(newRedis), func(s **Synced) **Redis { return &(*s).Redis }),
			}, {
				name: "postgres", example: "{address: 'db:5432', user: limits, database: app}",
				about: "Exchange through a PostgreSQL server.",
				value: set(postgresMapping().kind(newPostgres), func(s **Synced) **Postgres { return &(*s).Postgres }),
			}, {
				name: "interval", initial: words.Duration(defaultInterval), example: "250ms",
				about: "The time between two exchanges, from `1ms` to `1h`.",
				value: then(duration("a length of time such as 100ms"), func(r *reader, v value, s **Synced, d time.Duration) {
					if (*s).Interval = d; d < synced.MinInterval || d > time.Hour {
						r.bad(v, fmt.Sprintf("%v: want 1ms to 1h", d), "")
					}
				}),
			},
		},
		together: "Exactly one of `redis` and `postgres` is given.",
		check: func(m filled, _ **Synced) {
			m.one([]string{"redis", "postgres"}, "a synced store exchanges with one server", "the field redis or postgres is missing", "it names the server that holds the shared counters")
		},
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
	if life, most := l.Lifetime(), memcachedstore.LongestLifetime(); s.Memcached != nil && life > most {
		return fmt.Sprintf("%v: its hits count for %s, and a store in memcached keeps them for at most %s", l, words.Duration(life), words.Duration(most)), map[bool]string{true: "write week, or count in Redis"}[l.Zone != nil]
	}
	return "", ""
}
