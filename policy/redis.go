package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/file"
)

// ErrNoRedis is wrapped by the error of [RedisOf] for a file whose policies do not
// count in Redis.
var ErrNoRedis = errors.New("no Redis")

// RedisOf returns a client of the Redis in the section store.redis of a policy file:
// for programs that look at the counters of a service. name is the file's name in
// errors, and text is the file. server describes the Redis in words, without user and
// password. Nothing is connected yet, and the caller closes the client. If the file
// has another store or none, the error wraps [ErrNoRedis]; otherwise it has all
// mistakes of the file: see [Errors]. It may be called concurrently.
func RedisOf(name string, text []byte) (client redis.UniversalClient, server string, err error) {
	m := &mistakes{file: name}
	spec, problems := file.Read(text, file.Options{User: func(core.Request) string { return "" }, Tier: true})
	for _, p := range problems {
		m.add(p.Place, p.Text, p.Hint)
	}
	if m.found() {
		return nil, "", m.join()
	}
	switch s := spec.Store; {
	case s == nil:
		return nil, "", fmt.Errorf("%w: %s has no field store", ErrNoRedis, name)
	case s.Memcached != nil:
		return nil, "", fmt.Errorf("%w: the store of %s is memcached", ErrNoRedis, name)
	case s.Redis == nil:
		return nil, "", fmt.Errorf("%w: the store of %s is synced, whose counters have another form", ErrNoRedis, name)
	}
	s := spec.Store.Redis
	client, ok := openRedis(m, s)
	if !ok {
		return nil, "", m.join()
	}
	server = fmt.Sprintf("Redis %s, database %d", strings.Join(s.Addresses, ", "), s.DB)
	if s.Cluster {
		server = "Redis cluster " + strings.Join(s.Addresses, ", ")
	}
	return client, server, nil
}
