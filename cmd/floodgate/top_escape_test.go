package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// failing is a hook of a Redis client that fails each command.
type failing struct{ err error }

func (f failing) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f failing) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return f.err }
}
func (f failing) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return f.err }
}

// top prints an error of the server without control characters, which would clear the
// screen of a terminal.
func TestTopEscapesErrorsOfTheServer(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close() //nolint:errcheck // the test is over
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	lists := 0
	follow := &topping{
		stored: stored{store: redisstore.New(client, redisstore.Timeout(5*time.Second))}, top: 1, interval: time.Second, out: &out, now: time.Now,
		after: func(time.Duration) <-chan time.Time {
			passed := make(chan time.Time, 1)
			if lists++; lists == 1 {
				client.AddHook(failing{errors.New("\x1b[2Jgone")})
				passed <- time.Time{}
			} else {
				cancel()
			}
			return passed
		},
	}
	set, err := load(file(t, "limits.yaml", "policies: [{name: api, limits: 10/h}]"), &follow.stored)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close() //nolint:errcheck // the test is over
	if err := follow.run(ctx, set); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "gone") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("prints %q", &out)
	}
}
