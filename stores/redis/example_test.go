package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

var perUser = []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(100)}}}

// All instances of an application with this limiter share its counters.
func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close() //nolint:errcheck // nobody is left to tell
	limiter, err := core.New(core.Config{Name: "api", Rules: perUser, Store: redisstore.New(client)})
	fmt.Println(limiter.Name(), err)
	// Output: api <nil>
}

func ExampleNewClient() {
	client, err := redisstore.NewClient("redis://127.0.0.1:7000/2")
	fmt.Println(client.(*redis.Client).Options().Addr, err)
	_ = client.Close()
	_, err = redisstore.NewClient("http://127.0.0.1")
	fmt.Println(errors.Is(err, core.ErrConfig))
	// Output:
	// 127.0.0.1:7000 <nil>
	// true
}

// An Error tells what is wrong, and whether the hit may have been charged.
// Package resilient decides by this without code of your own.
func ExampleError() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nobody listens there
	defer client.Close()                                           //nolint:errcheck // nobody is left to tell
	limiter := core.Must(core.New(core.Config{Name: "api", Rules: perUser, Store: redisstore.New(client, redisstore.Timeout(time.Second))}))
	_, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
	var failure *redisstore.Error
	if errors.As(err, &failure) {
		fmt.Println(failure.Unknown, errors.Is(err, core.ErrNotCharged))
	}
	// Output: false true
}

// This program does not start without its counters.
func ExampleStore_Ping() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close() //nolint:errcheck // nobody is left to tell
	if err := redisstore.New(client).Ping(context.Background()); err != nil {
		fmt.Println("no counters")
	}
	// Output: no counters
}

// Options say how a store asks Redis. This one asks each time, by the application's clock, through a
// proxy such as Envoy that takes a command to be of its first key. It is one of several instances
// in one program, as a test may have.
func ExampleNew_options() {
	proxy := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6380"})
	defer proxy.Close() //nolint:errcheck // nobody is left to tell
	store := redisstore.New(proxy,
		redisstore.Timeout(50*time.Millisecond), redisstore.Clock(time.Now), redisstore.Log(slog.Default()),
		redisstore.WithoutDenialCache(), redisstore.AnotherInstance(), redisstore.ShardedByKey())
	defer store.Close() //nolint:errcheck // never fails
	_, err := core.New(core.Config{Name: "api", Rules: perUser, Store: store})
	fmt.Println(err, store.Guarantees().OneStep)
	// Output: <nil> false
}

// A limiter is made anew in the same process: Close of the first store releases its name.
func ExampleStore_Close() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6381"})
	defer client.Close() //nolint:errcheck // nobody is left to tell
	for range 2 {
		store := redisstore.New(client)
		_, err := core.New(core.Config{Name: "api", Rules: perUser, Store: store})
		fmt.Println(err, store.Close())
	}
	// Output:
	// <nil> <nil>
	// <nil> <nil>
}
