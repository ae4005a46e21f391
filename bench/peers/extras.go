package peers

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/keyfuncs"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// The peers that do more than take a hit: with a quota of the key's own, with a
// settlement after each take, in windows of the calendar, and with a slot that is taken and
// given back.
const (
	Quotas   = "floodgate, quotas of keys"
	Adjusted = "floodgate, take and Adjust"
	Calendar = "floodgate, windows of the calendar"
	Slots    = "floodgate, acquire and release"
)

// Extras are ours with more than a take of a hit, to be seen beside that.
var Extras = []Peer{
	extra(Quotas, nil, func(limiter *core.Limiter, l Limit) Allow {
		ctx, quotas := context.Background(), []int64{int64(l.Quota)} // not the limit's own: see extra
		return func(key string) bool {
			d, err := limiter.Take(ctx, 1, core.Hit{Rule: "ip", Key: key, Quotas: quotas})
			return err == nil && d.Allowed
		}
	}),
	extra(Adjusted, nil, func(limiter *core.Limiter, _ Limit) Allow {
		ctx := context.Background()
		return func(key string) bool {
			d, err := limiter.Take(ctx, 2, core.Hit{Rule: "ip", Key: key})
			return err == nil && d.Allowed && limiter.Adjust(ctx, d, 1) == nil
		}
	}),
	slots,
	extra(Calendar, time.UTC, func(limiter *core.Limiter, _ Limit) Allow { return take(limiter) }),
}

// slots is package inflight.
var slots = Peer{
	Name: Slots, Module: ourModule,
	Local: func(Limit) (Allow, func()) { return acquire(nil), func() {} },
	Redis: func(c *redis.Client, _ Limit) Allow {
		return acquire(redisstore.New(c, redisstore.Timeout(10*time.Second), redisstore.AnotherInstance()))
	},
}

func acquire(store inflight.Store) Allow {
	l, ctx := must(inflight.New(inflight.Config{Name: "bench", Max: 100, Store: store})), context.Background()
	return func(key string) bool {
		release, ok, err := l.Acquire(ctx, key)
		release()
		return err == nil && ok
	}
}

// IsExtra reports whether a peer is one of Extras.
func IsExtra(name string) bool {
	return slices.ContainsFunc(Extras, func(p Peer) bool { return p.Name == name })
}

// extra returns a peer with a limit in the process and in Redis. zone is that of a
// calendar's days; nil: windows have the length of the limit.
func extra(name string, zone *time.Location, allow func(*core.Limiter, Limit) Allow) Peer {
	limiter := func(l Limit, store core.Store) *core.Limiter {
		limit := core.Limit{Quota: int64(l.Quota), Window: l.Window}
		switch name {
		case Quotas:
			limit.Quota *= 2
		case Adjusted:
			limit.Quota++ // so much is reserved above what is used
		}
		if zone != nil {
			limit = core.PerDay(int64(l.Quota)).In(zone)
		}
		return must(core.New(core.Config{
			Name: "bench", Store: store,
			Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{limit}}},
		}))
	}
	return Peer{
		Name: name, Module: ourModule,
		Local: func(l Limit) (Allow, func()) {
			store := must(core.NewMemory(core.MemoryConfig{MaxKeys: l.keys()}))
			return allow(limiter(l, store), l), func() { _ = store.Close() }
		},
		Redis: func(c *redis.Client, l Limit) Allow {
			return allow(limiter(l, redisstore.New(c, redisstore.Timeout(10*time.Second), redisstore.AnotherInstance())), l)
		},
	}
}
