// Command synced shows two instances that exchange their counts through Redis
// at 127.0.0.1:6379.
//
//	go run ./examples/synced
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/redisbackend"
)

// instance is what would be a process of its own.
type instance struct {
	store   *synced.Store
	limiter *core.Limiter
}

func start(client *redis.Client) instance {
	store, err := synced.New(redisbackend.New(client), synced.Config{Namespace: "docs", Interval: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := core.New(core.Config{
		Name: "api",
		Rules: []core.Rule{{
			Name:   "user",
			Limits: []core.Limit{{Quota: 10, Window: 24 * time.Hour, Aligned: true}},
		}},
		Store: store,
	})
	if err != nil {
		log.Fatal(err)
	}
	return instance{store, limiter}
}

func (i instance) takeSix() (allowed int) {
	for range 6 {
		d, err := i.limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "42"})
		if err == nil && d.Allowed {
			allowed++
		}
	}
	return allowed
}

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	a, b := start(client), start(client)
	fmt.Println("before an exchange:", a.takeSix(), b.takeSix())
	for _, i := range []instance{a, b, a} { // usually a goroutine of the store does this
		if err := i.store.Sync(ctx); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("after it:", a.takeSix(), b.takeSix())
	for _, i := range []instance{a, b} { // Close pushes what is left
		if err := i.store.Close(ctx); err != nil {
			log.Fatal(err)
		}
	}
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
}
