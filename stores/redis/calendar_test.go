package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// counting counts commands that make decisions.
type counting struct{ n *atomic.Int64 }

func (counting) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if len(redisstore.Verbs(cmd)) > 0 {
			h.n.Add(1)
		}
		return next(ctx, cmd)
	}
}
func (counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func calendarBatch(rules []core.StoreRule, keys ...string) *core.Batch {
	b := new(core.Batch)
	for _, key := range keys {
		b.Items = append(b.Items, core.Item{Key: []byte(key), Cost: 2, Results: make([]core.Result, len(rules[0].Limits))})
	}
	return b
}

// A process whose clock is wrong by years is told the server's time, once, and
// decides by that. Nothing is charged twice.
func TestTheServersTimeDecidesTheWindow(t *testing.T) {
	for _, ahead := range []time.Duration{0, 90 * 24 * time.Hour, -5 * 366 * 24 * time.Hour} {
		client := newClient(t, redistest.Start(t).Addr)
		var n atomic.Int64
		client.AddHook(counting{&n})
		store := redisstore.New(client, redisstore.Timeout(patience), redisstore.WithoutDenialCache(), redisstore.AnotherInstance())
		rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerMonth(10), core.PerHour(100), core.PerDay(10).In(time.UTC)}}}
		bound, err := store.Open(bindName(t), rules)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bound.Reopen(rules); err != nil {
			t.Fatal(err)
		}
		if err := storetest.Do(t.Context(), bound, core.OpPeek, calendarBatch(rules, "other")); err != nil { // loads the script
			t.Fatal(err)
		}
		n.Store(0)
		redisstore.SetAhead(store, ahead)
		for i := range int64(3) {
			before := time.Now().UTC()
			b := calendarBatch(rules, "k")
			if err := storetest.Do(t.Context(), bound, core.OpTake, b); err != nil {
				t.Fatal(err)
			}
			month := time.Date(before.Year(), before.Month()+1, 1, 0, 0, 0, 0, time.UTC)
			r := b.Items[0].Results[0]
			if wait := month.Sub(before); r.Remaining != 8-2*i || r.ResetAfter > wait || r.ResetAfter < wait-time.Minute {
				t.Errorf("ahead %v, take %d: %+v, and the month ends in %v", ahead, i, r, wait)
			}
			if err := storetest.Do(t.Context(), bound, core.OpRefund, b); err != nil {
				t.Fatal(err)
			}
			if b = calendarBatch(rules, "k"); storetest.Do(t.Context(), bound, core.OpTake, b) != nil {
				t.Fatal("the second take")
			}
		}
		want := int64(9)
		if ahead != 0 {
			want++
		}
		if n.Load() != want {
			t.Errorf("ahead %v: %d commands, want %d", ahead, n.Load(), want)
		}
	}
}

// On a cluster the keys of one take are on servers that each tell their own time.
func TestTheServersTimeDecidesOnACluster(t *testing.T) {
	t.Parallel()
	_, client := newCluster(t)
	store := redisstore.New(client, redisstore.Timeout(patience), redisstore.WithoutDenialCache(), redisstore.AnotherInstance())
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerMonth(10)}}}
	bound, err := store.Open(bindName(t), rules)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		redisstore.SetAhead(store, 100*24*time.Hour)
		b := calendarBatch(rules, "a", "b", "c", "d")
		if err := storetest.Do(t.Context(), bound, core.OpTake, b); err != nil || !b.Allowed {
			t.Fatal(err, b)
		}
		for _, it := range b.Items {
			if it.Results[0].Remaining != 8-2*i {
				t.Errorf("take %d: %s: %+v", i, it.Key, it.Results)
			}
		}
	}
}

// A server that is asked for ever, because its time is in no window that it is
// given, is asked a bounded number of times, and nothing is charged.
type lying struct{ n *atomic.Int64 }

func (lying) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h lying) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if len(redisstore.Verbs(cmd)) == 0 {
			return next(ctx, cmd)
		}
		h.n.Add(1)
		return jumping{}
	}
}
func (lying) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

type jumping struct{}

func (jumping) Error() string { return "FLOODGATE edges 1764000123456789" }
func (jumping) RedisError()   {}

func TestAServerWhoseClockJumpsIsAskedAFewTimes(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	var n atomic.Int64
	client.AddHook(lying{&n})
	store := redisstore.New(client, redisstore.Timeout(patience), redisstore.WithoutDenialCache(), redisstore.AnotherInstance())
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerMonth(10)}}}
	bound, err := store.Open(bindName(t), rules)
	if err != nil {
		t.Fatal(err)
	}
	err = storetest.Do(t.Context(), bound, core.OpTake, calendarBatch(rules, "k"))
	if !errors.Is(err, core.ErrNotCharged) || !strings.Contains(err.Error(), "FLOODGATE edges") || n.Load() != 4 {
		t.Errorf("%v after %d commands", err, n.Load())
	}
}
