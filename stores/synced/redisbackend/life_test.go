package redisbackend_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/redisbackend"
)

// sent notes the arguments of commands and sends none.
type sent struct{ commands [][]any }

func (s *sent) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
}

func (s *sent) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, c redis.Cmder) error {
		s.commands = append(s.commands, c.Args())
		return redis.ErrClosed
	}
}

func (s *sent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The script gets how long each counter lives from the batch's time: until two
// lengths after its window's end and a second, and at least a second. A node is
// remembered for a day.
func TestHowLongCountersLive(t *testing.T) {
	c := redis.NewClient(&redis.Options{MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	var s sent
	c.AddHook(&s)
	start := time.Unix(1_764_000_000, 0)
	batch := synced.Batch{Namespace: "ns", Node: "n", Sequence: 7, At: start.Add(10 * time.Second)}
	for i, window := range []time.Duration{time.Minute, time.Hour, 4 * time.Second, 3 * time.Second} {
		batch.Diffs = append(batch.Diffs, synced.Diff{Key: fmt.Sprint(i), Window: window, Start: start, Diff: int64(i)})
	}
	if _, err := redisbackend.New(c).PushDiffs(t.Context(), batch); err == nil {
		t.Error("no error, and nothing was sent")
	}
	want := fmt.Sprint([]any{7, 86_400_000, 0, 171_000, 1, 10_791_000, 2, 3_000, 3, 1_000})
	if len(s.commands) == 0 {
		t.Fatal("no command")
	}
	args := s.commands[0] // EVALSHA, the script's hash, the number of keys, and the keys
	if got := fmt.Sprint(slices.Clone(args[3+1+len(batch.Diffs):])); got != want {
		t.Errorf("the script gets %s, want %s", got, want)
	}
}
