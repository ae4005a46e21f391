package redisstore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// keeper is a server that keeps one value, and notes for how long.
type keeper struct {
	mu    sync.Mutex
	value swapstore.Value
	n     int
	ttl   time.Duration
}

func (k *keeper) Load(_ context.Context, names []string) ([]swapstore.Value, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Repeat([]swapstore.Value{k.value}, len(names)), nil
}

func (k *keeper) Swap(_ context.Context, _ string, old swapstore.Value, value []byte, ttl time.Duration) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.value.Version != old.Version {
		return false, nil
	}
	k.n++
	k.value, k.ttl = swapstore.Value{Value: slices.Clone(value), Version: k.n}, ttl
	return true, nil
}

func (k *keeper) Delete(context.Context, []string) error { return nil }

// program is a version of a program with one limit, on a server in Go and on
// Redis.
type program struct {
	limit         core.Limit
	clock         *storetest.Clock
	onGo, onRedis core.Counters
}

func (p program) take(t *testing.T) (onGo, onRedis core.Result) {
	t.Helper()
	for i, b := range []core.Counters{p.onGo, p.onRedis} {
		batch := one("k", 1, 1)
		if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			onGo = batch.Items[0].Results[0]
		} else {
			onRedis = batch.Items[0].Results[0]
		}
	}
	return onGo, onRedis
}

// Another program's record is kept until it expires. If its clock was wrong, so
// that it expires too late, its expiry is cut, once: no value is kept for ever. What
// a clock that is less than one window ahead has written is kept as it is. The
// script does the same as the Go.
func TestRecordsOfAClockThatWasWrong(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	const slack = time.Minute // of Redis with a clock of the application
	const longest = core.MaxRefill + core.MaxWindow
	start := time.UnixMicro(1_764_000_123_456_789)
	cuts := map[bool]int{}
	for round := range 300 {
		server := &keeper{}
		name := fmt.Sprint("l", round)
		bind := func(l core.Limit, at time.Time) program {
			clock := storetest.NewClock(at)
			rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}
			swap := core.Must(swapstore.New(server, swapstore.Config{Clock: clock.Now}))
			opts := []redisstore.Option{redisstore.Clock(clock.Now), redisstore.Timeout(patience), redisstore.WithoutDenialCache(), redisstore.AnotherInstance()}
			return program{l, clock, core.Must(swap.Open(name, rules)), core.Must(redisstore.New(client, opts...).Open(name, rules))}
		}
		l := anyLimit(r)
		l.Quota = max(l.Quota, 3)
		if l.Window == core.MinWindow || l.Validate() != nil {
			continue // the own limit, or none
		}
		life := l.Lifetime()
		ahead := time.Duration(r.Int64N(int64(l.Window))).Truncate(time.Microsecond)
		wrong := r.IntN(2) == 0
		bound := longest
		if l.Algorithm < core.TokenBucket && l.Lockout == (core.Lockout{}) && l.Zone == nil {
			bound = 3 * l.Window
		}
		if wrong {
			ahead = bound + time.Duration(r.Int64N(int64(core.MaxRefill))).Truncate(time.Microsecond)
		}
		other := bind(l, start.Add(ahead))
		own := bind(core.Limit{Quota: 1000, Window: core.MinWindow, Algorithm: core.FixedWindow, Aligned: true}, start)
		other.take(t)
		for step := range 2 {
			own.take(t)
			onRedis := client.PTTL(context.Background(), core.StoreRule{Name: "r"}.StoredKey(name, []byte("k"))).Val() - slack
			if d := server.ttl - onRedis; d < -2*time.Millisecond || d > 5*time.Second {
				t.Fatalf("seed %d, round %d, %v, %v ahead: kept for %v by Go and %v by Redis", seed, round, l, ahead, server.ttl, onRedis)
			}
			if wrong && server.ttl != bound-time.Duration(step)*time.Hour {
				t.Fatalf("seed %d, round %d, %v, %v ahead: kept for %v, want %v less an hour each hour", seed, round, l, ahead, server.ttl, bound)
			}
			if !wrong && server.ttl > max(ahead+life, core.MinWindow) {
				t.Fatalf("seed %d, round %d, %v, %v ahead: kept for %v, and it lasts %v", seed, round, l, ahead, server.ttl, life)
			}
			if !wrong || bound < 2*time.Hour {
				break
			}
			own.clock.Advance(time.Hour)
		}
		cuts[wrong]++
		if wrong {
			continue
		}
		// The other program finds what it has stored.
		onGo, onRedis := other.take(t)
		if onGo != onRedis {
			t.Fatalf("seed %d, round %d, %v: by Go %+v, by Redis %+v", seed, round, l, onGo, onRedis)
		}
		if l.Algorithm == core.FixedWindow && l.Lockout == (core.Lockout{}) && onGo.Remaining != l.Quota-2 {
			t.Fatalf("seed %d, round %d, %v: %d left after 2 hits", seed, round, l, onGo.Remaining)
		}
	}
	if cuts[true] < 50 || cuts[false] < 50 {
		t.Errorf("seed %d: %d clocks were wrong, %d were not", seed, cuts[true], cuts[false])
	}
}

// A record whose window can be read is kept for three windows at most. One of a kind that
// is not known, or with a window that no program has, is kept for as long as any limit can last.
func TestRecordsOfUnknownKindsAreCut(t *testing.T) {
	server := redistest.Start(t)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience), redisstore.Clock(clock.Now))
	const far = "\xff\xff\xff\xff\xff\xff\x3f"
	const longest = core.MaxRefill + core.MaxWindow
	for name, c := range map[string]struct {
		record string
		life   time.Duration
	}{
		"only a kind":                      {"\x08\x00\x00" + far + "\xc8", longest},
		"a window without an end":          {"\x0a\x00\x00" + far + "\x00\x01\x01", longest},
		"a window that none has":           {"\x0e\x00\x00" + far + "\x00\x00\x00\x00\x00\x00\x80", longest},
		"an unknown kind":                  {"\x0f\x00\x00" + far + "\xc8\x01\x00\x00\x00\x00\x00\x07", longest},
		"the longest window":               {"\x0e\x00\x00" + far + "\x07" + micros(core.MaxWindow), 3 * core.MaxWindow},
		"a window that is a bit too long":  {"\x0e\x00\x00" + far + "\x07" + micros(core.MaxWindow+time.Microsecond), longest},
		"an hour":                          {"\x0f\x00\x00" + far + "\x07" + micros(time.Hour) + "x", 3 * time.Hour},
		"the longest window, but of debts": {"\x0e\x00\x00" + far + "\x08" + micros(core.MaxWindow), longest},
	} {
		server.MustDo("SET", stored(t, "k"), "\x02"+c.record)
		take(t, b, "k")
		want := c.life + time.Minute
		if d := want - lifetime(server, stored(t, "k")); d < 0 || d > 5*time.Second {
			t.Errorf("%s: kept for %v less than %v", name, d, want)
		}
		value := server.MustDo("GET", stored(t, "k"))
		if !strings.HasSuffix(value, c.record[10:]) || strings.Contains(value, far) {
			t.Errorf("%s: %x was stored as %x", name, c.record, value)
		}
	}
}

// micros returns a length of time as a record has it.
func micros(d time.Duration) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(d.Microseconds()))[:windowBytes])
}
