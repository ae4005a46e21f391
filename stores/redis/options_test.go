package redisstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// Bind and Ping return the errors of New's arguments.
func TestNilArgumentsAreNamed(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close() //nolint:errcheck // nothing was sent
	const option = "an option is nil: write one such as redisstore.Timeout(time.Second), or none"
	for want, s := range map[string]*redisstore.Store{
		option:        redisstore.New(client, nil, redisstore.WithoutDenialCache()),
		"client: nil": redisstore.New(nil),
	} {
		_, err := s.Bind("a", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(1)}}})
		for _, err := range []error{err, s.Ping(t.Context())} {
			if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}
