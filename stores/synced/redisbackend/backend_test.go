package redisbackend_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/backendtest"
	"github.com/floodgate-go/floodgate/stores/synced/redisbackend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newClient(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestBackend(t *testing.T) {
	t.Parallel()
	t.Run("one node", func(t *testing.T) {
		c := newClient(t, redistest.Start(t).Addr)
		backendtest.Run(t, func(*testing.T) synced.Backend { return redisbackend.New(c) })
	})
	t.Run("a cluster", func(t *testing.T) {
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(t, 3).Addrs()})
		t.Cleanup(func() { _ = c.Close() })
		backendtest.Run(t, func(*testing.T) synced.Backend { return redisbackend.New(c) })
	})
}

func batch(sequence uint64, n int64, at time.Time) synced.Batch {
	return synced.Batch{Namespace: "ns", Node: "n", Sequence: sequence, At: at, Diffs: []synced.Diff{{Key: "k", Window: time.Minute, Start: at.Truncate(time.Minute), Diff: n}}}
}

// Counters live two lengths longer than their windows, and everything expires.
func TestEverythingExpires(t *testing.T) {
	c := newClient(t, redistest.Start(t).Addr)
	b, at := redisbackend.New(c), time.Now().Truncate(time.Minute).Add(10*time.Second)
	if _, err := b.PushDiffs(t.Context(), batch(1, 1, at)); err != nil {
		t.Fatal(err)
	}
	names := c.Keys(t.Context(), "*").Val()
	if len(names) != 2 {
		t.Errorf("%q", names)
	}
	for _, name := range names {
		ttl := c.PTTL(t.Context(), name).Val()
		if strings.Contains(name, ":node:") {
			if ttl < 23*time.Hour || ttl > 24*time.Hour {
				t.Errorf("%s lives %v", name, ttl)
			}
		} else if ttl > 171*time.Second || ttl < 160*time.Second {
			t.Errorf("%s lives %v, want 171 s", name, ttl)
		}
	}
	late := batch(2, 1, at)
	late.At = at.Add(time.Hour)
	if got, err := b.PushDiffs(t.Context(), late); err != nil || got[0] != 2 || c.PTTL(t.Context(), fmt.Sprintf("fgs1:{ns}:60000000:%d:k", at.Truncate(time.Minute).UnixMicro())).Val() > time.Second {
		t.Errorf("hits of a window that has long ended: %v, %v", got, err)
	}
}

// A value that somebody else has stored counts as 0.
func TestForeignValues(t *testing.T) {
	c := newClient(t, redistest.Start(t).Addr)
	b, at := redisbackend.New(c), time.Now()
	for i, spoil := range []func(name string){
		func(name string) { c.Set(t.Context(), name, "abc", 0) },
		func(name string) { c.Del(t.Context(), name); c.LPush(t.Context(), name, 1) },
		func(name string) { c.Set(t.Context(), name, "9223372036854775807", 0) },
		func(name string) { c.Set(t.Context(), name, " 7", 0) },
		func(name string) { c.Set(t.Context(), name, "-7", 0) },
	} {
		name := fmt.Sprintf("fgs1:{ns}:60000000:%d:k", at.Truncate(time.Minute).UnixMicro())
		spoil(name)
		if got, err := b.PushDiffs(t.Context(), batch(uint64(2*i+1), 0, at)); err != nil || got[0] != 0 {
			t.Errorf("asked: %v, %v", got, err)
		}
		for c, err := range b.Counters(t.Context(), "ns", []time.Duration{time.Minute}, at) {
			if err != nil || c.Count != 0 {
				t.Errorf("Counters: %+v, %v", c, err)
			}
		}
		if got, err := b.Window(t.Context(), "ns", "k", at.Truncate(time.Minute), time.Minute); err != nil || got != 0 {
			t.Errorf("Window: %d, %v", got, err)
		}
		if got, err := b.PushDiffs(t.Context(), batch(uint64(2*i+2), 7, at)); err != nil || got[0] != 7 {
			t.Errorf("pushed: %v, %v", got, err)
		}
		if c.PTTL(t.Context(), name).Val() <= 0 {
			t.Error("it lives for ever")
		}
	}
}

// A counter does not pass the largest number that Lua keeps: it stays there.
func TestACounterThatIsFull(t *testing.T) {
	b, at, most := redisbackend.New(newClient(t, redistest.Start(t).Addr)), time.Now(), int64(1<<53-1)
	for i, push := range []struct{ diff, want int64 }{{most - 1, most - 1}, {1 << 40, most}, {most, most}, {0, most}, {-5, most - 5}} {
		if got, err := b.PushDiffs(t.Context(), batch(uint64(i+1), push.diff, at)); err != nil || got[0] != push.want {
			t.Errorf("after %d more: %v, %v, want %d", push.diff, got, err, push.want)
		}
	}
	if got, err := b.Window(t.Context(), "ns", "k", at.Truncate(time.Minute), time.Minute); err != nil || got != most-5 {
		t.Errorf("Window: %d, %v", got, err)
	}
}

// A user who lacks a command gets an error, and no counter changes. With the commands
// that New names, a batch is applied.
func TestAForbiddenCommandChangesNothing(t *testing.T) {
	server := redistest.Start(t)
	own := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "limited", Password: "secret"})
	t.Cleanup(func() { _ = own.Close() })
	server.MustDo("ACL", "SETUSER", "limited", "on", ">secret", "~fgs1:*", "+@connection", "+evalsha", "+eval", "+get", "+set", "+mget", "+scan")
	b, at := redisbackend.New(own), time.Now()
	if got, err := b.PushDiffs(t.Context(), batch(1, 5, at)); err != nil || got[0] != 5 {
		t.Fatalf("pushed 5: %v, %v", got, err)
	}
	for _, command := range []string{"mget", "scan"} {
		server.MustDo("ACL", "SETUSER", "limited", "-"+command)
		for c, err := range b.Counters(t.Context(), "ns", []time.Duration{time.Minute}, at) {
			if err == nil || !strings.HasPrefix(err.Error(), "redis: ") {
				t.Errorf("without %s: %+v, %v", command, c, err)
			}
		}
	}
	for i, command := range []string{"get", "set"} {
		server.MustDo("ACL", "SETUSER", "limited", "-"+command)
		for range 2 { // a batch is pushed again
			if got, err := b.PushDiffs(t.Context(), batch(uint64(i+2), 1, at)); err == nil {
				t.Errorf("without %s: pushed, and got %v", command, got)
			}
		}
		server.MustDo("ACL", "SETUSER", "limited", "+"+command)
		if got, err := b.PushDiffs(t.Context(), batch(uint64(i+2), 1, at)); err != nil || got[0] != int64(i+6) {
			t.Errorf("with %s again: %v, %v, want %d", command, got, err, i+6)
		}
	}
}

// With Interval 0 a decision whose answer is lost fails. Neither go-redis nor the store pushes it
// again: a hit is charged once, and a refund is made once. go-redis sends a batch with a sequence again.
func TestALostAnswerWithoutAnInterval(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	b := redisbackend.New(newClient(t, proxy.Addr))
	s := core.Must(synced.New(b, synced.Config{}))
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	l := core.Must(core.New(core.Config{Name: "l", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{{Quota: 100, Window: 24 * time.Hour, Aligned: true}}}}}))
	k := core.Hit{Rule: "r", Key: "k"}
	d, err := l.Take(t.Context(), 10, k)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		do   func() error
		left int64
	}{
		{func() error { _, err := l.Take(t.Context(), 5, k); return err }, 85},
		{func() error { return l.Adjust(t.Context(), d, 7) }, 88},
	} {
		proxy.Fail(faultproxy.Cut, 1)
		if err := row.do(); err == nil {
			t.Error("no error")
		}
		proxy.Fail(faultproxy.None, 0)
		if d, err := l.Peek(t.Context(), 0, k); err != nil || d.Remaining != row.left {
			t.Errorf("%d left, want %d, %v", d.Remaining, row.left, err)
		}
	}
	proxy.Fail(faultproxy.Cut, 1)
	if got, err := b.PushDiffs(t.Context(), batch(1, 3, time.Now())); err != nil || got[0] != 3 {
		t.Errorf("a batch with a sequence: %v, %v", got, err)
	}
}
