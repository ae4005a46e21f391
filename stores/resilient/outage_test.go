package resilient_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A store that is down at the start: the first decision says why.
func TestTheFirstFailureIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFlaky(t, nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}), 1_000_000)
		want := func(when string, lines int) {
			t.Helper()
			if n := strings.Count(log.String(), "\n"); n != lines {
				t.Errorf("%s: %d lines, want %d:\n%s", when, n, lines, log.String())
			}
		}
		f.fail(errGone)
		_, _ = take(l)
		if want("the first failure", 1); !strings.Contains(log.String(), "connection refused") || !strings.Contains(log.String(), "in process") {
			t.Errorf("no cause:\n%s", log.String())
		}
		for range 100 {
			_, _ = take(l)
			time.Sleep(time.Second)
		}
		want("an outage", 1)
		f.fail(nil)
		time.Sleep(2 * time.Second)
		_, _ = take(l)
		want("the store is back", 2)

		// A failure now and then is not logged each time.
		time.Sleep(time.Hour)
		for range 120 {
			f.fail(errGone)
			_, _ = take(l)
			f.fail(nil)
			_, _ = take(l)
			time.Sleep(time.Second)
		}
		want("failures now and then for two minutes", 4)
	})
}

// Hits admitted in the process during an outage count after it, until their
// window ends.
func TestAnOutageGivesNoFreshQuota(t *testing.T) {
	for name, limit := range map[string]core.Limit{
		"sliding":  core.PerHour(10),
		"fixed":    {Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow},
		"log":      {Quota: 10, Window: time.Hour, Algorithm: core.SlidingLog},
		"token":    {Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket},
		"bucketed": {Quota: 10, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFlaky(t, nil)
				f.fail(errGone) // down at the start
				l := core.Must(core.New(core.Config{
					Name: "l", Store: newStore(t, f, resilient.Config{Failures: 1}),
					Rules: []core.Rule{{Name: "user", Limits: []core.Limit{limit}}},
				}))
				admitted := func(key string, n int) (count int) {
					t.Helper()
					for range n {
						d, err := l.Take(context.Background(), 1, core.Hit{Rule: "user", Key: key})
						if err != nil {
							t.Fatal(err)
						}
						if d.Allowed {
							count++
						} else if d.RetryAfter <= 0 || d.RetryAfter > 2*time.Hour {
							t.Errorf("denied with RetryAfter %v", d.RetryAfter)
						}
					}
					return count
				}
				if n := admitted("alice", 7); n != 7 {
					t.Fatalf("%d admitted in the process", n)
				}
				f.fail(nil)
				time.Sleep(2 * time.Second)
				if n := admitted("bob", 20); n != 10 {
					t.Errorf("of a key that was not there, %d were admitted, want 10", n)
				}
				if n := admitted("alice", 20); n != 3 {
					t.Errorf("%d admitted after the outage, want the 3 that were left", n)
				}
				time.Sleep(2*time.Hour + time.Minute)
				if n := admitted("alice", 20); n != 10 {
					t.Errorf("%d admitted when the window is over, want 10", n)
				}
			})
		})
	}
}

// A Peek neither remembers a key nor forgets one that is remembered.
func TestAPeekInAnOutageForgetsNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		f.fail(errGone)
		l := newLimiter(t, newStore(t, f, resilient.Config{Failures: 1}), 10)
		for range 6 {
			if d, err := take(l); err != nil || !d.Allowed || !d.Degraded {
				t.Fatal(d, err)
			}
		}
		time.Sleep(40 * time.Minute) // a hit would now make the mark of the key anew
		if d, err := l.Peek(t.Context(), 1, core.Hit{Rule: "user", Key: "alice"}); err != nil || !d.Allowed || !d.Degraded {
			t.Fatal(d, err)
		}
		f.fail(nil)
		time.Sleep(2 * time.Second)
		admitted := 0
		for range 20 {
			if d, err := take(l); err != nil {
				t.Fatal(err)
			} else if d.Allowed {
				admitted++
			}
		}
		if admitted != 4 {
			t.Errorf("%d admitted after the outage, want the 4 that were left", admitted)
		}
	})
}

// Only hits that were charged in an outage are charged to the store after it.
func TestAPeekInAnOutageOwesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{}, rule("user", fixed(10, time.Hour)))
		a, b := all[0], all[1]
		if n := a.admitted(3, alice); n != 3 {
			t.Fatalf("%d admitted, want 3", n)
		}
		a.link.fail(errRefused)
		for range 2 {
			if d, err := a.Peek(context.Background(), 3, alice); err != nil || !d.Allowed || !d.Degraded || d.Remaining != 7 {
				t.Errorf("%v, %v", d, err)
			}
		}
		a.link.fail(nil)
		time.Sleep(2 * time.Second)
		if d, err := a.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "bob"}); err != nil || d.Degraded {
			t.Fatalf("%v, %v", d, err)
		}
		time.Sleep(2 * time.Second)
		if n := b.admitted(20, alice); n != 7 {
			t.Errorf("%d admitted after the outage, want the 7 that are left", n)
		}
	})
}

// A Reset also forgets hits admitted during an outage.
func TestAResetForgetsTheOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		f.fail(errGone)
		l := newLimiter(t, newStore(t, f, resilient.Config{Failures: 1}), 2)
		_, _ = take(l)
		_, _ = take(l)
		f.fail(nil)
		time.Sleep(2 * time.Second)
		if d, err := take(l); err != nil || d.Allowed {
			t.Fatalf("%v, %v", d, err)
		}
		if err := l.Reset(context.Background(), core.Hit{Rule: "user", Key: "alice"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if d, err := take(l); err != nil || !d.Allowed || d.Degraded {
				t.Errorf("%v, %v after a reset", d, err)
			}
		}
	})
}

// With several instances, quotas of the process are shares: they do not apply
// after an outage, because the store then knows of the hits.
func TestSharesDoNotApplyAfterTheOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{Failures: 1, Instances: 4}), 8)
		f.fail(errGone)
		_, _ = take(l)
		f.fail(nil)
		time.Sleep(2 * time.Second)
		for _, row := range []struct {
			key  string
			want int
		}{{"alice", 7}, {"bob", 8}, {"alice, reset", 8}} {
			key, want := row.key, row.want
			if key == "alice, reset" {
				key = "alice"
				if err := l.Reset(context.Background(), core.Hit{Rule: "user", Key: key}); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			for range 20 {
				if d, err := l.Take(context.Background(), 1, core.Hit{Rule: "user", Key: key}); err != nil {
					t.Fatal(err)
				} else if d.Allowed {
					n++
				}
			}
			if n != want {
				t.Errorf("%s: %d admitted, want %d", key, n, want)
			}
		}
	})
}

// A Redis that is killed and comes back empty has forgotten the hits that it
// had; the process has not.
func TestARedisThatIsKilledAndComesBackEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, DialTimeout: time.Second})
	t.Cleanup(func() { _ = client.Close() })
	up := make(chan bool, 10)
	store := newStore(t, redisstore.New(client, redisstore.Timeout(patience)), resilient.Config{
		Failures: 1, Retry: 5 * time.Millisecond, OnChange: func(c resilient.Change) { up <- c.Up },
	})
	l := newLimiter(t, store, 10)
	admitted := 0
	count := func() core.Decision {
		d, err := take(l)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			admitted++
		}
		return d
	}
	for range 6 {
		if count().Degraded {
			t.Fatal("not decided by Redis")
		}
	}
	server.Stop()
	for range 2 {
		if !count().Degraded {
			t.Fatal("decided by Redis, which is gone")
		}
	}
	server.Restart()
	for end := time.Now().Add(patience); !store.Up(); <-time.After(time.Millisecond) {
		if d, _ := l.Peek(context.Background(), 0, core.Hit{Rule: "user", Key: "somebody"}); time.Now().After(end) {
			t.Fatalf("Redis is not asked again: %v", d)
		}
	}
	for range 20 {
		count()
	}
	if admitted != 10 {
		t.Errorf("%d admitted in an hour, want 10", admitted)
	}
	if fmt.Sprint(<-up, <-up) != "false true" {
		t.Error("the changes are not reported in order")
	}
}
