package redisbackend_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/redisbackend"
)

func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
	defer client.Close() //nolint:errcheck // nobody is left to tell
	store, err := synced.New(redisbackend.New(client), synced.Config{Interval: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close(context.Background()) //nolint:errcheck // nothing was counted
	fmt.Println("exact:", store.Guarantees().Exact)
	// Output: exact: false
}
