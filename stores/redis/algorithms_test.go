package redisstore_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
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

// The format of a month's state; a state that none can have written denies its key.
func TestStoredValuesOfACalendar(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	f := newFormatted(t, redistest.Start(t), core.PerMonth(10).In(berlin))
	f.take()
	value := f.value()
	const golden = "AiMAAAD8d9LXRAYMAKAUnW8CCvPh3EgQALw6U3xCBgEAAAAAjScA"
	if got := base64.StdEncoding.EncodeToString(value); got != golden {
		t.Errorf("stored %s, want %s", got, golden)
	}
	const length = 1 + 23 + 7 + 4 // the place of the window's length
	for _, row := range []struct {
		seconds [4]byte
		denied  bool
	}{
		{[4]byte{0x00, 0x8d, 0x27, 0x00}, false}, // 30 days
		{[4]byte{0, 0, 0, 0}, true},              // none
		{[4]byte{0x30, 0x5a, 0x2a, 0x00}, false}, // 32 days and 3 hours
		{[4]byte{0x31, 0x5a, 0x2a, 0x00}, true},  // and a second
		{[4]byte{0xff, 0xff, 0xff, 0xff}, true},  // 136 years
	} {
		changed := append([]byte(nil), value...)
		copy(changed[length:], row.seconds[:])
		f.set(changed)
		if b := f.take(); b.Allowed == row.denied {
			t.Errorf("%x: %v", row.seconds, b.Items[0].Results)
		}
	}
}

// A charge at a time that is not in the window that the script is told is an error if it
// needs a window. A window begins with its edge, and ends before the next.
func TestATimeOutsideTheWindowOfACall(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	script := redis.NewScript(redisstore.ScriptText())
	edge := func(month time.Month) int64 { return time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC).UnixMicro() }
	for now, want := range map[int64]string{
		edge(3) - 1: "FLOODGATE edges",
		edge(3):     "",
		edge(4) - 1: "",
		edge(4):     "FLOODGATE edges",
	} {
		for _, peek := range []bool{true, false} {
			args := redisstore.Ask(peek, edge(3)+1, []core.Limit{core.PerMonth(10)}, false, 1)
			const place = 8 + 4 + 4 + 1 + 4 + 4 // of the time
			input := []byte(args[0].(string))
			binary.LittleEndian.PutUint64(input[place:], uint64(now))
			args[0] = string(input)
			reply, err := script.Run(t.Context(), client, []string{fmt.Sprint("k", now)}, args...).Text()
			if err != nil {
				t.Fatal(err)
			}
			if fails := want != "" && !peek; (reply[8] == 2) != fails || fails && !strings.Contains(reply, want) {
				t.Errorf("at %d: %q, want the error %q", now, reply, want)
			}
		}
	}
}

// A month that a clock has written at its beginning or later is believed until the
// beginning of the month before. There only a step of the clock explains it, and the
// hits are those of this month.
func TestAMonthAheadOfTheClock(t *testing.T) {
	server := redistest.Start(t)
	april, may, june := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for now, ends := range map[time.Time]time.Time{april: may, april.Add(time.Microsecond): june} {
		f := newFormatted(t, server, core.PerMonth(1))
		server.MustDo("DEL", stored(t, "k"))
		f.clock.Set(may)
		f.take()
		f.clock.Set(now)
		if r := f.take().Items[0].Results[0]; r.RetryAfter != ends.Sub(now) {
			t.Errorf("at %v: %+v, want %v to wait", now, r, ends.Sub(now))
		}
	}
}

// A refund gives back hits of its month, from the first microsecond to the last.
func TestARefundOfAMonth(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.PerMonth(10))
	april, may := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	f.clock.Set(april.Add(time.Hour))
	batch := one("k", 8, 1)
	if err := storetest.Do(t.Context(), f.bound, core.OpTake, batch); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		at   time.Time
		left int64
	}{{april.Add(-time.Microsecond), 2}, {april, 3}, {may.Add(-time.Microsecond), 4}, {may, 4}} {
		refund := one("k", 1, 1)
		refund.Items[0].At = row.at.UnixMicro()
		if err := storetest.Do(t.Context(), f.bound, core.OpRefund, refund); err != nil {
			t.Fatal(err)
		}
		look := one("k", 0, 1)
		if err := storetest.Do(t.Context(), f.bound, core.OpTake, look); err != nil {
			t.Fatal(err)
		}
		if got := look.Items[0].Results[0].Remaining; got != row.left {
			t.Errorf("after a refund of %v: %d left, want %d", row.at, got, row.left)
		}
	}
}

// locked is the state of a lockout, with times since a test began.
type locked struct {
	window        time.Duration // when it began
	hits, strikes int
	until         time.Duration // when the last wait ends
	needed        time.Duration // when the state means nothing any more
}

// lockedSince reads the state of the first limit of the key k.
func (f *formatted) lockedSince(start time.Time) (s locked) {
	f.t.Helper()
	v := string(f.value())
	const state = 18 // behind the version, the record's head and the limit's identity
	if len(v) < state+22 {
		f.t.Fatalf("the value %x has no state of a lockout", v)
	}
	at := func(i int) time.Duration {
		if number(v[i:], 7) == 0 {
			return 0
		}
		return time.UnixMicro(number(v[i:], 7)).Sub(start)
	}
	return locked{at(state), int(number(v[state+7:], 4)), int(number(v[state+11:], 4)), at(state + 15), at(4)}
}

// What is stored of a lockout: the window and its hits, the strikes, and the end of the
// last wait, which the strikes decay from.
func TestStoredStatesOfALockout(t *testing.T) {
	const m, us, day = time.Minute, time.Microsecond, 24 * time.Hour
	type step struct {
		at   time.Duration
		give bool          // a refund of a hit, instead of a take of one
		of   time.Duration // when the refunded hit was
		want locked
	}
	server := redistest.Start(t)
	for name, c := range map[string]struct {
		lockout core.Lockout
		steps   []step
	}{
		"three times as long each": {
			core.Lockout{First: 10 * m, Factor: 3, Max: 90*m + us, Decay: day},
			[]step{
				{at: 1 * m, want: locked{1 * m, 1, 0, 0, 61 * m}},
				{at: 1 * m, give: true, of: 1*m - us, want: locked{1 * m, 1, 0, 0, 61 * m}}, // before the window
				{at: 1 * m, give: true, of: 61 * m, want: locked{1 * m, 1, 0, 0, 61 * m}},   // after it
				{at: 1 * m, give: true, of: 1 * m, want: locked{1 * m, 0, 0, 0, 61 * m}},    // the window goes on
				{at: 2 * m, want: locked{1 * m, 1, 0, 0, 61 * m}},
				{at: 3 * m, want: locked{1 * m, 2, 1, 13 * m, 13*m + day}},
				{at: 3 * m, give: true, of: 61*m - us, want: locked{1 * m, 1, 0, 0, 61 * m}}, // the wait ends
				{at: 3 * m, want: locked{1 * m, 2, 1, 13 * m, 13*m + day}},
				{at: 13 * m, want: locked{13 * m, 1, 1, 13 * m, 13*m + day}}, // a window begins as the wait ends
				{at: 13 * m, want: locked{13 * m, 2, 2, 43 * m, 43*m + 2*day}},
				{at: 14 * m, give: true, of: 13 * m, want: locked{13 * m, 1, 1, 13 * m, 13*m + day}},
				{at: 14 * m, want: locked{13 * m, 2, 2, 44 * m, 44*m + 2*day}},
				{at: 44 * m, want: locked{44 * m, 1, 2, 44 * m, 44*m + 2*day}},
				{at: 44 * m, want: locked{44 * m, 2, 3, 134 * m, 134*m + 3*day}},
				{at: 134 * m, want: locked{134 * m, 1, 3, 134 * m, 134*m + 3*day}},
				{at: 134 * m, want: locked{134 * m, 2, 4, 224*m + us, 224*m + us + 4*day}},
				{at: 300 * m, want: locked{300 * m, 1, 4, 224*m + us, 224*m + us + 4*day}},
				{at: 300 * m, want: locked{300 * m, 2, 4, 390*m + us, 390*m + us + 4*day}}, // no more strikes count
				{at: 400*m + 2*day, want: locked{400*m + 2*day, 1, 4, 390*m + us, 390*m + us + 4*day}},
				{at: 400*m + 2*day, want: locked{400*m + 2*day, 2, 3, 490*m + 2*day, 490*m + 5*day}}, // two are forgotten
			},
		},
		"twice as long": {
			core.Lockout{First: 10 * m, Factor: 2, Max: 20 * m, Decay: day},
			[]step{
				{at: 1 * m, want: locked{1 * m, 1, 0, 0, 61 * m}},
				{at: 1 * m, want: locked{1 * m, 2, 1, 11 * m, 11*m + day}},
				{at: 11 * m, want: locked{11 * m, 1, 1, 11 * m, 11*m + day}},
				{at: 11 * m, want: locked{11 * m, 2, 2, 31 * m, 31*m + 2*day}},
				{at: 31 * m, want: locked{31 * m, 1, 2, 31 * m, 31*m + 2*day}},
				{at: 31 * m, want: locked{31 * m, 2, 2, 51 * m, 51*m + 2*day}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFormatted(t, server, core.Limit{Quota: 2, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: c.lockout})
			start := f.clock.Now()
			for i, s := range c.steps {
				f.clock.Set(start.Add(s.at))
				if s.give {
					batch := one("k", 1, 1)
					batch.Items[0].At = start.Add(s.of).UnixMicro()
					if err := storetest.Do(t.Context(), f.bound, core.OpRefund, batch); err != nil {
						t.Fatal(err)
					}
				} else if b := f.take(); !b.Allowed {
					t.Fatalf("step %d: %+v", i, b.Items[0].Results)
				}
				if got := f.lockedSince(start); got != s.want {
					t.Fatalf("step %d: %+v: the state is %+v", i, s, got)
				}
			}
		})
	}
}

// A lockout whose strikes are forgotten is not stored any more.
func TestAForgottenLockoutIsNotStored(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Decay: time.Hour}},
		core.Limit{Quota: 10, Window: 100 * 24 * time.Hour, Algorithm: core.FixedWindow})
	f.take()
	both := len(f.value())
	charge := one("k", 1, 2)
	charge.Items[0].At = f.clock.Now().UnixMicro() - 1 // no limit counts it
	for _, c := range []struct {
		after time.Duration
		size  int
	}{{time.Hour + time.Minute - time.Microsecond, both}, {time.Microsecond, both - 40 + 1}} {
		f.clock.Advance(c.after)
		if err := storetest.Do(t.Context(), f.bound, core.OpRefund, charge); err != nil { // which writes
			t.Fatal(err)
		}
		if got := len(f.value()); got != c.size {
			t.Errorf("%v later: %d bytes are stored, want %d", c.after, got, c.size)
		}
	}
}

// A wait that began less than one window ahead of a clock that has been set back is
// believed. From a window on, it begins anew.
func TestAWaitAheadOfTheClock(t *testing.T) {
	server := redistest.Start(t)
	for name, c := range map[string]struct{ back, wait time.Duration }{
		"less than a window": {time.Hour - time.Microsecond, time.Hour + 10*time.Minute - time.Microsecond},
		"a window":           {time.Hour, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFormatted(t, server, core.Limit{Quota: 2, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: 10 * time.Minute}})
			f.take()
			f.clock.Advance(5 * time.Minute) // the window begins before the wait
			f.take()
			f.clock.Advance(-c.back)
			if r := f.take().Items[0].Results[0]; r.RetryAfter != c.wait {
				t.Errorf("%+v, want %v to wait", r, c.wait)
			}
		})
	}
}

// A sliding log in which one time is later than the next cannot be read,
// wherever that is: takes are decided as if the key was new, and none fails.
func TestALogThatIsNotInOrderIsUnreadable(t *testing.T) {
	server := redistest.Start(t)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{{Quota: 40, Window: time.Minute, Algorithm: core.SlidingLog}}}}
	b := bind(t, newClient(t, server.Addr), rules, redisstore.Timeout(patience), redisstore.Clock(clock.Now), redisstore.WithoutDenialCache())
	for n := 1; n <= 24; n++ {
		key := fmt.Sprint(n)
		for range n {
			take(t, b, key)
			clock.Advance(time.Millisecond)
		}
		name := core.StoreRule{Name: "r"}.StoredKey(t.Name(), []byte(key))
		whole := server.MustDo("GET", name)
		if got := take(t, b, key).Items[0].Results[0].Remaining; got != int64(40-n-1) {
			t.Fatalf("%d hits in order, and one more: %d remain of 40", n, got)
		}
		for i := range n - 1 { // the i-th hit is 50 s late
			at := len(whole) - 7*(n-i)
			damaged := whole[:at+3] + string([]byte{whole[at+3] + 3}) + whole[at+4:]
			server.MustDo("SET", name, damaged)
			for j := range 3 {
				batch := take(t, b, key)
				if r := batch.Items[0].Results[0]; !batch.Allowed || r.Remaining != int64(39-j) {
					t.Fatalf("hit %d of %d is damaged, take %d: %+v, want %d left", i, n, j, r, 39-j)
				}
			}
		}
	}
}

// A refund takes away hits of the time of its charge, and none of a microsecond before or
// after, also if it gives back more than was charged then.
func TestARefundOfALogTakesHitsOfItsTime(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.SlidingLog})
	var charges []*core.Batch
	for range 3 {
		charges = append(charges, f.take())
		f.clock.Advance(time.Microsecond)
	}
	value := f.value()
	hits := len(value) - 3*7
	charges[1].Items[0].Cost = 5
	if err := storetest.Do(t.Context(), f.bound, core.OpRefund, charges[1]); err != nil {
		t.Fatal(err)
	}
	if got := f.value(); string(got[hits:]) != string(value[hits:hits+7])+string(value[hits+14:]) {
		t.Errorf("of the hits %x, %x are left, want the first and the last", value[hits:], got[hits:])
	}
}

// Whatever bytes of a stored state are changed, no operation on the key fails,
// and nothing remains above the quota.
func TestDamagedStatesFailNoOperation(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const quota = 20
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	lockout := core.Limit{
		Name: "lockout", Quota: quota, Window: time.Hour, Algorithm: core.FixedWindow,
		Lockout: core.Lockout{First: time.Minute, Factor: 3, Max: time.Hour, Decay: time.Hour},
	}
	for _, l := range append(all(quota), lockout) {
		t.Run(l.Name, func(t *testing.T) {
			clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
			rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}
			quiet := redisstore.Log(slog.New(slog.DiscardHandler))
			b := bind(t, client, rules, redisstore.Timeout(patience), redisstore.Clock(clock.Now), quiet)
			for i := range 300 {
				key := fmt.Sprint(i)
				for range 1 + r.IntN(8) {
					take(t, b, key)
					clock.Advance(time.Duration(r.Int64N(l.Window.Microseconds()/3)) * time.Microsecond)
				}
				name := stored(t, key)
				value := []byte(server.MustDo("GET", name))
				for range 1 + r.IntN(3) {
					value[1+r.IntN(len(value)-1)] = byte(r.IntN(256))
				}
				server.MustDo("SET", name, string(value))
				for _, cost := range []int64{1, 0, 3, quota} {
					batch := one(key, cost, 1)
					if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
						t.Fatalf("the value %x: %v", value, err)
					}
					if res := batch.Items[0].Results[0]; res.Remaining > quota {
						t.Fatalf("the value %x: %+v", value, res)
					}
					if err := storetest.Do(t.Context(), b, core.OpRefund, batch); err != nil {
						t.Fatalf("the value %x: %v", value, err)
					}
				}
			}
		})
	}
}

// A bucketed window whose total is not the sum of its buckets cannot be read.
// Package resilient around the store does not take it for an outage.
func TestABucketedWindowWithAWrongTotalIsUnreadable(t *testing.T) {
	server := redistest.Start(t)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	limit := core.Limit{Quota: 40, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute}
	quiet := slog.New(slog.DiscardHandler)
	direct := redisstore.New(newClient(t, server.Addr), redisstore.Timeout(patience), redisstore.Clock(clock.Now), redisstore.WithoutDenialCache(), redisstore.Log(quiet))
	store := core.Must(resilient.New(direct, resilient.Config{Failures: 1, Log: quiet}))
	b := core.Must(store.Open(bindName(t), []core.StoreRule{{Name: "r", Limits: []core.Limit{limit}}}))
	for n := range 20 { // as many buckets, of which the last may hold nothing
		key := fmt.Sprint(n)
		for range n {
			take(t, b, key)
			clock.Advance(time.Minute)
		}
		batch := take(t, b, key)
		if err := storetest.Do(t.Context(), b, core.OpRefund, batch); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			continue
		}
		const state = 18 // behind the version, the record's head and the limit's identity
		value := []byte(server.MustDo("GET", stored(t, key)))
		total := binary.LittleEndian.Uint32(value[state+6+7:])
		if total != uint32(n) {
			t.Fatalf("the total of %d hits is not where the test looks for it: %x", n, value)
		}
		binary.LittleEndian.PutUint32(value[state+6+7:], total+1)
		server.MustDo("SET", stored(t, key), string(value))
		if batch := take(t, b, key); batch.Degraded || batch.Items[0].Results[0].Remaining != 39 {
			t.Errorf("%d hits, and a total of one more: %+v, degraded %v", n, batch.Items[0].Results, batch.Degraded)
		}
		if !store.Up() {
			t.Fatal("one damaged counter was taken for an outage")
		}
	}
}

// Buckets that hold nothing are not stored before the first that does.
func TestTheOldestBucketsHoldHits(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute})
	first := f.take()
	one := len(f.value())
	f.clock.Advance(5 * time.Minute)
	f.take()
	if got, want := len(f.value()), one+5*4; got != want {
		t.Errorf("%d bytes, want %d: six buckets are stored", got, want)
	}
	if err := storetest.Do(t.Context(), f.bound, core.OpRefund, first); err != nil {
		t.Fatal(err)
	}
	if got := len(f.value()); got != one {
		t.Errorf("%d bytes, want %d: one bucket holds hits", got, one)
	}
}
