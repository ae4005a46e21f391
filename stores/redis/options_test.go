package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// The shortest Timeout is a millisecond.
func TestTheShortestTimeout(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close() //nolint:errcheck // nothing was sent
	for timeout, valid := range map[time.Duration]bool{time.Millisecond: true, time.Millisecond - 1: false, 0: false, -time.Second: false} {
		_, err := redisstore.New(client, redisstore.Timeout(timeout), redisstore.AnotherInstance()).Open("a", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(1)}}})
		if (err == nil) != valid || err != nil && !errors.Is(err, core.ErrConfig) {
			t.Errorf("%v: %v", timeout, err)
		}
	}
}

// Open and Ping return the errors of New's arguments.
func TestNilArgumentsAreNamed(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close() //nolint:errcheck // nothing was sent
	const option = "an option is nil: write one such as redisstore.Timeout(time.Second), or none"
	for want, s := range map[string]*redisstore.Store{
		option:                          redisstore.New(client, nil, redisstore.WithoutDenialCache()),
		"client: nil: must be a client": redisstore.New(nil),
	} {
		_, err := s.Open("a", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(1)}}})
		for _, err := range []error{err, s.Ping(t.Context())} {
			if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}
