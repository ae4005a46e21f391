package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// forgiving is a configuration whose requests wait. They cost two hits of two, and the handler may say that it
// was less.
func forgiving() core.Config {
	config := patient(time.Minute, core.Limit{Quota: 2, Window: time.Minute, Algorithm: core.FixedWindow})
	rule := &config.Rules[0]
	rule.Cost = func(core.Request) (int64, error) { return 2, nil }
	rule.Counts = func(_ core.Request, o core.Outcome) bool { return o.Status != http.StatusNotFound }
	rule.Clears = func(_ core.Request, o core.Outcome) bool { return o.Status == http.StatusNoContent }
	return config
}

// A key gets hits back while requests wait for it: they get their turn at once.
func TestWhatIsGivenBackEndsAWait(t *testing.T) {
	for name, giveBack := range givesBack {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, c := newLimiter(t, forgiving(), nil), newCrowd()
				first := l.Check(&request{})
				if name == "Block" {
					_ = l.Reset(t.Context(), waitedFor)
					_ = l.Block(t.Context(), time.Minute, waitedFor)
				}
				for i := range 2 {
					c.come(i, func() (core.Decision, error) { return l.Wait(t.Context(), 1, waitedFor) })
				}
				if n := l.Stats().Waiting; n != 2 || !first.Allowed {
					t.Fatalf("%d requests wait, %v", n, first)
				}
				time.Sleep(time.Second)
				if err := giveBack(t.Context(), l, first); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if c.inOrder(t, 2); c.at(1) != time.Second {
					t.Errorf("the last one waited for %v", c.at(1))
				}
			})
		})
	}
}

// The hits come back just when a request has been denied, and before it is in line.
func TestWhatIsGivenBackBeforeTheLineIsNotMissed(t *testing.T) {
	for name, giveBack := range givesBack {
		if name == "Block" || name == "ResetAll" {
			continue // the store of this test can do neither
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, config := newAsked(), forgiving()
				config.Store = s
				l := newLimiter(t, config, nil)
				first := l.Check(&request{})
				s.after = func(ctx context.Context, b *core.Batch) {
					if !b.Allowed {
						s.after = nil
						if err := giveBack(ctx, l, first); err != nil {
							t.Error(err)
						}
					}
				}
				if d := l.Check(&request{}); !d.Allowed || d.Waited() != 0 || s.takes.Load() != 3 {
					t.Errorf("%v after %v, %d takes", d, d.Waited(), s.takes.Load())
				}
			})
		})
	}
}

// A store takes its time to give hits back: the requests that wait get their turn once it has done so, and
// not before, when they would find nothing.
func TestWhatASlowStoreGivesBackEndsAWait(t *testing.T) {
	for name, giveBack := range givesBack {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow, config, c := false, forgiving(), newCrowd()
				config.Store = &around{core.Must(core.NewMemory(core.MemoryConfig{})), func(ctx context.Context, c core.Counters, b *core.Batch) error {
					if slow && b.Op&(core.OpTake|core.OpPeek|core.OpCharge) == 0 {
						time.Sleep(time.Second)
					}
					return c.Do(ctx, b)
				}}
				l := newLimiter(t, config, nil)
				first := l.Check(&request{})
				if name == "Block" {
					_ = l.Reset(t.Context(), waitedFor)
					_ = l.Block(t.Context(), time.Minute, waitedFor)
				}
				for i := range 2 {
					c.come(i, func() (core.Decision, error) { return l.Wait(t.Context(), 1, waitedFor) })
				}
				slow = true
				if err := giveBack(t.Context(), l, first); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if c.inOrder(t, 2); c.at(1) != time.Second {
					t.Errorf("the last one waited for %v", c.at(1))
				}
			})
		})
	}
}

// The head of a line goes away, and what it has found holds no longer, or was of a store that is
// away: the next one asks at once.
func TestTheNextHeadDoesNotTrustWhatHoldsNoLonger(t *testing.T) {
	for _, name := range []string{"Reset", "Degraded"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAsked()
				config := forgiving()
				config.Store = s
				l, c := newLimiter(t, config, nil), newCrowd()
				if name == "Reset" {
					l.Check(&request{})
				} else {
					s.after = func(_ context.Context, b *core.Batch) {
						s.after = nil
						b.Allowed, b.Degraded = false, true
						b.Items[0].Results[0] = core.Result{ResetAfter: time.Minute, MoreAfter: time.Minute, RetryAfter: time.Minute}
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				c.come(0, func() (core.Decision, error) { return l.Wait(ctx, 1, waitedFor) })
				c.come(1, func() (core.Decision, error) { return l.Wait(t.Context(), 1, waitedFor) })
				if n := l.Stats().Waiting; n != 2 {
					t.Fatalf("%d requests wait", n)
				}
				time.Sleep(time.Second)
				cancel()
				if name == "Reset" {
					if err := l.Reset(t.Context(), waitedFor); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if d, done := c.of(1); !done || !d.Allowed || d.at != time.Second {
					t.Errorf("%t, %v at %v", done, d.Decision, d.at)
				}
			})
		})
	}
}

// What a store says of one take is not said of the next one.
func TestTheFlagsOfATakeEndWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(time.Minute, core.Limit{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow})
		config.Store = s
		config.Rules = append(config.Rules, core.Rule{Name: "other", Key: static("k"), Limits: []core.Limit{core.PerHour(5)}})
		l := newLimiter(t, config, nil)
		l.Check(&request{})
		s.before = func(b *core.Batch) {
			if b.Degraded || b.Cached || b.Items[1].Unknown {
				t.Errorf("asked with degraded %t, cached %t, unknown %t", b.Degraded, b.Cached, b.Items[1].Unknown)
			}
		}
		s.after = func(_ context.Context, b *core.Batch) {
			s.after = nil
			b.Degraded, b.Cached, b.Items[1].Unknown = true, true, true
		}
		if d := l.Check(&request{}); !d.Allowed || d.Waited() == 0 || d.Degraded {
			t.Errorf("%v after %v, degraded %t", d, d.Waited(), d.Degraded)
		}
	})
}

// A head whose store panics leaves the line to the next one.
func TestAHeadThatPanicsLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		s.before = func(*core.Batch) {
			if s.takes.Load() == 3 { // the first of a head
				panic("the store")
			}
		}
		config := patient(time.Minute, core.PerSecond(1))
		config.Store = s
		l, c := newLimiter(t, config, nil), newCrowd()
		panicked := 0
		for i := range 4 {
			c.come(i, func() (d core.Decision, err error) {
				defer func() {
					if recover() != nil {
						panicked++
					}
				}()
				return l.Check(&request{}), nil
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if panicked != 1 || len(c.allowed()) != 3 || c.allowed()[1] != 2 || c.allowed()[2] != 3 || l.Stats().Waiting != 0 {
			t.Errorf("%d panics, %v allowed, %+v", panicked, c.allowed(), l.Stats())
		}
	})
}

// The store fails while requests wait: each of them learns it at its turn.
func TestRequestsInLineLearnThatTheStoreHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := newAsked(), &lines{}
		config := patient(time.Minute, core.PerSecond(1))
		config.Store, config.Log = s, log.logger()
		l, c := newLimiter(t, config, nil), newCrowd()
		for i := range 3 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		c.come(3, func() (core.Decision, error) {
			return l.Wait(context.Background(), 1, core.Hit{Rule: "r", Key: "k"})
		})
		if err := s.Store.(*core.Memory).Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, i := range []int{1, 2, 3} {
			if d, _ := c.of(i); d.Reason != core.ReasonFailed || !errors.Is(d.Err, core.ErrClosed) || d.Waited() <= 0 {
				t.Errorf("request %d: %v, %v", i, d, d.Err)
			}
		}
		if d, _ := c.of(3); !errors.Is(d.err, core.ErrClosed) {
			t.Errorf("Wait: %v", d.err)
		}
	})
}

// The rules that deny decide whether a request waits, and how long.
func TestARuleHasAMaxWaitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Config{MaxWait: time.Second, Rules: []core.Rule{
			{Name: "short", Key: methodKey("short"), Limits: []core.Limit{core.PerSecond(1)}},
			{Name: "long", Key: methodKey("long"), Limits: []core.Limit{{Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}}, MaxWait: time.Minute},
			{Name: "other", Key: methodKey("other"), Limits: []core.Limit{{Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}}},
		}}, nil)
		for range 2 {
			for _, row := range []struct {
				key     string
				allowed bool
			}{{"long", true}, {"other", false}} {
				l.Check(&request{method: row.key})
				begun := time.Now()
				d := l.Check(&request{method: row.key})
				if d.Allowed != row.allowed || d.Waited() != time.Since(begun) || !row.allowed && d.Waited() != 0 {
					t.Errorf("%s: %v after %v", row.key, d, time.Since(begun))
				}
			}
			time.Sleep(time.Minute)
		}
	})
}

// methodKey applies to requests of a method.
func methodKey(method string) core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		if r.Method() != method {
			return dst, core.SkipRule
		}
		return append(dst, "k"...), nil
	}
}

// A request that is denied by a second key goes to that key's line, and holds nobody up in
// the line that it leaves.
func TestARequestWithTwoKeysHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "ip", Limits: []core.Limit{{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow}}},
			{Name: "user", Limits: []core.Limit{{Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}}},
		}}, nil), newCrowd()
		wait := func(i int, hits ...core.Hit) {
			c.come(i, func() (core.Decision, error) { return l.Wait(context.Background(), 1, hits...) })
		}
		ip := func(k string) core.Hit { return core.Hit{Rule: "ip", Key: k} }
		user := func(k string) core.Hit { return core.Hit{Rule: "user", Key: k} }
		wait(0, user("u"))
		wait(1, ip("a"))
		wait(2, ip("a"), user("u")) // waits for the user
		wait(3, ip("a"))
		wait(4, ip("a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, want := range []time.Duration{0, 0, 10 * time.Second, time.Second, 2 * time.Second} {
			if d, _ := c.of(i); d.at != want || d.err != nil {
				t.Errorf("request %d was allowed at %v, want %v: %v", i, d.at, want, d.err)
			}
		}
	})
}

// A dry run makes nobody wait.
func TestADryRunDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := patient(time.Minute, core.PerSecond(1))
		config.DryRun = true
		l := newLimiter(t, config, nil)
		for range 3 {
			if d := l.Check(&request{}); !d.Allowed || d.Waited() != 0 {
				t.Errorf("%v", d)
			}
			if d, err := l.Wait(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); !d.Allowed || d.Waited() != 0 || err != nil {
				t.Errorf("%v, %v", d, err)
			}
		}
	})
}

// A Wait logs that the store has failed, and nothing else.
func TestAWaitLogsThatTheStoreHasFailed(t *testing.T) {
	var log bytes.Buffer
	s := newAsked()
	l := core.Must(core.New(core.Config{Name: "api", Store: s, Log: slog.New(slog.NewTextHandler(&log, nil)), Rules: []core.Rule{
		{Name: "r", Limits: []core.Limit{core.PerHour(5)}},
	}}))
	hit := core.Hit{Rule: "r", Key: "k"}
	if _, err := l.Wait(t.Context(), 1, hit); err != nil || log.Len() > 0 {
		t.Errorf("error %v, and the log says %s", err, &log)
	}
	gone := errors.New("gone")
	s.fail = func(context.Context) error { return gone }
	if _, err := l.Wait(t.Context(), 1, hit); !errors.Is(err, gone) || !bytes.Contains(log.Bytes(), []byte("operation=wait")) {
		t.Errorf("error %v, and the log says %q", err, &log)
	}
}

// As golang.org/x/time/rate does: a worker whose context has ended gets nothing, also if a hit is free.
func TestAWaitWhoseContextHasEndedIsChargedNothing(t *testing.T) {
	l := newLimiter(t, patient(time.Minute, core.PerSecond(1)), nil)
	hit := core.Hit{Rule: "r", Key: "k"}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	for ctx, text := range map[context.Context]string{
		canceled: `limiter "default", rule "r": context canceled`,
		late:     `limiter "default", rule "r": floodgate: the wait is too long: context deadline exceeded`,
	} {
		d, err := l.Wait(ctx, 1, hit)
		if d.Allowed || d.Waited() != 0 || !errors.Is(err, ctx.Err()) || errors.Is(err, core.ErrWaitTooLong) != (ctx == late) || err.Error() != text {
			t.Errorf("%v, %v", d, err)
		}
	}
	if d, err := l.Wait(t.Context(), 1, hit); err != nil || d.Remaining != 0 {
		t.Errorf("%v, %v", d, err)
	}
	if n := l.Stats().Waiting; n != 0 {
		t.Errorf("%d wait", n)
	}
}

// Reconfigure leaves requests in line: each is decided by the configuration with which it
// began, and later requests stand behind it.
func TestReconfigureWhileRequestsWait(t *testing.T) {
	for _, quota := range []int64{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			l, c := newLimiter(t, patient(time.Minute, core.PerSecond(1)), nil), newCrowd()
			come := func(i int) {
				c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
			}
			for i := range 3 {
				come(i)
			}
			if err := l.Reconfigure(patient(30*time.Second, core.PerSecond(quota))); err != nil {
				t.Fatal(err)
			}
			for i := 3; i < 6; i++ {
				come(i)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			c.inOrder(t, 6)
			if d, _ := c.of(2); d.Limit().Quota != 1 {
				t.Errorf("a request that waited was decided with the quota %d", d.Limit().Quota)
			}
			if d, _ := c.of(3); d.Limit().Quota != quota {
				t.Errorf("a later request was decided with the quota %d, want %d", d.Limit().Quota, quota)
			}
		})
	}
}

// A request whose key is in the body waits too. If a rule without MaxWait denies it, the body is
// not read.
func TestRequestsThatNeedTheirBodyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		field := func(dst []byte, r core.Request) ([]byte, error) {
			b, err := r.Body(10)
			return append(dst, b...), err
		}
		l := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "site", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}}, // it denies nothing, and lets nothing wait
			{Name: "ip", Key: static("k"), Limits: []core.Limit{{Quota: 1, Window: 2 * time.Second, Algorithm: core.FixedWindow}}, MaxWait: 3 * time.Second},
			{Name: "name", Key: field, Limits: []core.Limit{core.PerHour(100)}},
		}}, nil)
		for i := range 2 {
			r := &request{body: "alice"}
			if d := l.Check(r); !d.Allowed || d.Waited() != time.Duration(i)*2*time.Second || r.reads == 0 {
				t.Errorf("%v after %v, body read %d times", d, d.Waited(), r.reads)
			}
		}
		l = newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "ip", Key: static("k"), Limits: []core.Limit{core.PerHour(1)}},
			{Name: "name", Key: field, Limits: []core.Limit{core.PerHour(100)}, MaxWait: time.Minute},
		}}, nil)
		l.Check(&request{body: "alice"})
		r := &request{body: "alice"}
		if d := l.Check(r); d.Allowed || d.Waited() != 0 || r.reads != 0 {
			t.Errorf("%v after %v, body read %d times", d, d.Waited(), r.reads)
		}
	})
}

// A request that is denied in line is told a lower bound of the wait: until the head asks, and
// then the windows that the hits before it need. The store is not asked.
func TestTheWaitBehindOthersIsReckoned(t *testing.T) {
	tenth := core.Limit{Quota: 10, Window: time.Second, Algorithm: core.TokenBucket} // a hit every 100 ms
	burst := core.Limit{Quota: 20, Window: time.Second, Algorithm: core.TokenBucket, Burst: 10}
	fixed := core.Limit{Quota: 10, Window: time.Second, Algorithm: core.FixedWindow}
	for _, row := range []struct {
		name   string
		limits []core.Limit
		ahead  []int64 // the costs of those before it
		cost   int64
		want   time.Duration
	}{
		{"one before it", []core.Limit{tenth}, []int64{1}, 1, 200 * time.Millisecond},
		{"several hits", []core.Limit{tenth}, []int64{6}, 3, 900 * time.Millisecond},
		{"more than the quota", []core.Limit{tenth}, []int64{10, 2}, 4, 1600 * time.Millisecond},
		{"more than the burst", []core.Limit{burst}, []int64{10, 10}, 4, 1200 * time.Millisecond},
		{"in the same window", []core.Limit{fixed}, []int64{1, 8}, 1, time.Second},
		{"in the next window", []core.Limit{fixed}, []int64{1, 9}, 1, 2 * time.Second},
		{"the longer one of two", []core.Limit{tenth, fixed}, []int64{1, 1, 1}, 1, 1300 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAsked()
				config := patient(0, row.limits...)
				config.Store = s
				l, c := newLimiter(t, config, nil), newCrowd()
				if d, err := l.Take(t.Context(), 10, waitedFor); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				for i, cost := range row.ahead {
					c.come(i, func() (core.Decision, error) { return l.Wait(ctx, cost, waitedFor) })
				}
				takes := s.takes.Load()
				short, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer end()
				d, err := l.Wait(short, row.cost, waitedFor)
				if !errors.Is(err, core.ErrWaitTooLong) || d.RetryAfter != row.want || d.Waited() != 0 || d.Remaining != 0 {
					t.Errorf("%v, %v: a wait of %v after %v, want %v at once", d, err, d.RetryAfter, d.Waited(), row.want)
				}
				if s.takes.Load() != takes || s.peeks.Load() != 0 {
					t.Errorf("%d takes and %d peeks", s.takes.Load()-takes, s.peeks.Load())
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A request that costs more than a quota stands in no line.
func TestARequestThatNoWaitHelpsIsDeniedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "all", Key: static("k"), MaxWait: time.Minute, Limits: []core.Limit{core.PerSecond(1)}},
			{Name: "banned", Key: methodKey("POST"), Limits: []core.Limit{core.PerSecond(0)}},
		}}, nil), newCrowd()
		for i := range 2 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		if d := l.Check(&request{method: "POST"}); d.Allowed || d.Rule() != "banned" || d.RetryAfter != core.Never || d.Waited() != 0 {
			t.Errorf("%v of rule %q", d, d.Rule())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		c.inOrder(t, 2)
	})
}
