package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/redis/internal/joining"
)

// OpenAhead returns counters of a process whose clock is so far ahead.
func OpenAhead(s *Store, rules []core.StoreRule, ahead time.Duration) core.Counters {
	b := newCounters(s, "ahead", rules)
	for i := range b.rules {
		r := &b.rules[i]
		r.limitsAt(time.Now().Add(ahead).UnixMicro())
		dated := *r.dated.Load()
		dated.from, dated.to = -maxTime, maxTime
		r.dated.Store(&dated)
	}
	return b
}

// OnCommand is a hook of a client: it is called for each command, and sends it with next.
type OnCommand func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error

func (OnCommand) DialHook(next redis.DialHook) redis.DialHook { return next }

func (OnCommand) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h OnCommand) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h(ctx, cmd, next) }
}

// Verbs returns the verbs of the calls in a command, such as "take" or "take take".
func Verbs(cmd redis.Cmder) (verbs []string) {
	for _, arg := range cmd.Args() {
		if x, ok := arg.(*exchange); ok {
			for _, c := range x.calls {
				verbs = append(verbs, [...]string{"take", "peek", "charge", "grant", "refund", "block", "reset"}[c.verb])
			}
		}
	}
	return verbs
}

// OneAtATime makes the store have one exchange under way, however long that takes.
// Calls that come meanwhile wait until it ends.
func OneAtATime(s *Store) *Store {
	s.whole = joining.New(joining.Config[*call]{
		Send: s.send, Weight: func(*call) int { return 1 }, Gone: (*call).gone,
		Most: 1000, MostWeight: 1000, AtOnce: 1, Patience: time.Hour,
	})
	return s
}

// Waiting returns how many calls wait for the exchange under way.
func Waiting(s *Store) int { return s.whole.Waiting() }
