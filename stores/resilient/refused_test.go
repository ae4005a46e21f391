package resilient_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A store answers, tells the counts and refuses every charge, as a full Redis or a
// replica does. The hits that the instances admit meanwhile are charged later.
func TestHitsOfRefusedChargesAreChargedLater(t *testing.T) {
	for _, n := range []int{1, 3, 10} {
		synctest.Test(t, func(t *testing.T) {
			quota := 10 * n
			all := instances(t, n, resilient.Config{Instances: n, Failures: 5}, rule("user", fixed(int64(quota), 24*time.Hour)))
			round := func(times int) (admitted []int) {
				for _, i := range all {
					admitted = append(admitted, i.admitted(times, alice))
				}
				return admitted
			}
			for _, i := range all {
				i.link.full.Store(true)
			}
			during := round(20)
			if !slices.Equal(during, slices.Repeat([]int{10}, n)) {
				t.Errorf("%d admitted in the outage, want 10 each", during)
			}
			time.Sleep(10 * time.Second) // the charges are tried, and refused
			for _, i := range all {
				i.link.full.Store(false)
			}
			time.Sleep(settled)
			if after := round(2 * quota); !slices.Equal(after, make([]int, n)) {
				t.Errorf("%d instances: %d admitted after the outage, want none: the quota of %d is used up", n, after, quota)
			}
		})
	}
}

// The same with a Redis that becomes a replica, whose memory is full, or that
// forbids a command.
func TestARedisThatRefusesWrites(t *testing.T) {
	server := redistest.Start(t)
	server.MustDo("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all")
	ctx := context.Background()
	for _, row := range []struct {
		name       string
		begin, end []string
	}{
		{"replica", []string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
		{"full", []string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}},
		{"forbidden", []string{"ACL", "SETUSER", "app", "-set"}, []string{"ACL", "SETUSER", "app", "+set"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			const n, quota = 3, 30
			var all []*core.Limiter
			var stores []*resilient.Store
			for range n {
				client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "app", Password: "secret"})
				t.Cleanup(func() { _ = client.Close() })
				stores = append(stores, newStore(t, redisstore.New(client, redisstore.AnotherInstance(), redisstore.Timeout(patience)), resilient.Config{Instances: n, Retry: 5 * time.Millisecond}))
				all = append(all, core.Must(core.New(core.Config{Name: row.name, Store: stores[len(stores)-1], Rules: []core.Rule{rule("user", fixed(quota, 24*time.Hour))}})))
			}
			round := func() (admitted int) {
				for range quota {
					for _, l := range all {
						if d, err := l.Take(ctx, 1, alice); err != nil {
							t.Fatal(err)
						} else if d.Allowed {
							admitted++
						}
					}
				}
				return admitted
			}
			server.MustDo(row.begin...)
			if n := round(); n != quota {
				t.Errorf("%d admitted in the outage, want %d", n, quota)
			}
			server.MustDo(row.end...)
			processtest.WaitFor(t, "the instances to charge their hits", func() bool {
				for i, l := range all {
					d, err := l.Peek(ctx, 0, alice)
					if err != nil || d.Degraded || d.Remaining > 0 && i == n-1 || !stores[i].Up() {
						return false
					}
				}
				return true
			})
			if n := round(); n != 0 {
				t.Errorf("%d admitted after the outage, in which the quota of %d was used up", n, quota)
			}
		})
	}
}
