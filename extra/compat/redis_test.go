package compat

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

func TestTheNewestClientOfRedis(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	storetest.Run(t, func(_ testing.TB, clock func() time.Time) core.Store {
		opts := []redisstore.Option{redisstore.Timeout(20 * time.Second), redisstore.WithoutDenialCache()}
		if clock != nil {
			opts = append(opts, redisstore.Clock(clock))
		}
		return redisstore.New(client, opts...)
	})
}

// A client that pipelines by itself, as go-redis has one since 9.23, may write a command after the
// store's deadline.
func TestAutomaticPipeliningIsRefused(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() })
	pipeliner, err := client.AutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pipeliner.Close() })
	if _, err := redisstore.New(pipeliner).Open("l", nil); !errors.Is(err, core.ErrConfig) {
		t.Errorf("error %v, want one of a wrong client", err)
	}
}
