// Command redis_rate is the new program for those who come from go-redis/redis_rate.
//
//	go run ./examples/coming-from/redis_rate
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	limiter, err := core.New(core.Config{
		Name: "from-redis-rate",
		Rules: []core.Rule{{
			Name:   "user",
			Limits: []core.Limit{{Quota: 3, Window: time.Minute, Algorithm: core.TokenBucket}},
		}},
		Store: redisstore.New(client),
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, user := range []string{"ann", "ann", "ann", "ann", "bob"} {
		decision, err := limiter.Take(ctx, 1, core.Hit{Rule: "user", Key: user})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(user, decision.Allowed, decision.Remaining)
	}
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
}
