package memcachedstore_test

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/floodgate-go/floodgate/core"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

// All instances of an application with these servers share their counters.
func ExampleNew() {
	store, err := memcachedstore.New([]string{"127.0.0.1:11211", "127.0.0.1:11212"}, memcachedstore.Timeout(100*time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close() //nolint:errcheck // nobody is left to tell
	limiter, err := core.New(core.Config{
		Name:  "api",
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(100)}}},
		Store: store,
	})
	fmt.Println(limiter.Name(), err)
	// Output: api <nil>
}

// A test moves the clock, and makes the store ask memcached about every request.
func ExampleNew_options() {
	now := time.Now()
	store, err := memcachedstore.New([]string{"127.0.0.1:11211"},
		memcachedstore.Clock(func() time.Time { return now }),
		memcachedstore.WithoutDenialCache(),
		memcachedstore.Log(slog.Default()))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Close())
	// Output: <nil>
}

// memcached keeps nothing for more than 30 days, and a sliding window needs its
// hits for two windows.
func ExampleStore_Open() {
	store := core.Must(memcachedstore.New([]string{"127.0.0.1:11211"}))
	_, err := core.New(core.Config{
		Name:  "monthly",
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{{Quota: 100, Window: 30 * 24 * time.Hour}}}},
		Store: store,
	})
	fmt.Println(err)
	// Output: floodgate: configuration: rule "user", limit "user": Window: 720h0m0s: hits count for up to 1440h0m0s, and a store in memcached keeps them for at most 719h58m59s
}

// A fixed window of 30 days is a minute too long.
func ExampleLongestLifetime() {
	for _, window := range []time.Duration{29 * 24 * time.Hour, 30 * 24 * time.Hour} {
		l := core.Limit{Quota: 100, Window: window, Algorithm: core.FixedWindow}
		fmt.Println(l, l.Lifetime() <= memcachedstore.LongestLifetime)
	}
	// Output:
	// 100 per 29d (fixed_window) true
	// 100 per 30d (fixed_window) false
}

// A program counts for a limiter's name once on the same servers. A second store for the name is an
// error, unless the program is several instances at once, as a test may be.
func ExampleAnotherInstance() {
	for _, opts := range [][]memcachedstore.Option{nil, nil, {memcachedstore.AnotherInstance()}} {
		store := core.Must(memcachedstore.New([]string{"127.0.0.1:11213"}, opts...))
		defer store.Close() //nolint:errcheck // nobody is left to tell
		_, err := core.New(core.Config{
			Name:  "api",
			Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(100)}}},
			Store: store,
		})
		fmt.Println(errors.Is(err, core.ErrConfig))
	}
	// Output:
	// false
	// true
	// false
}
