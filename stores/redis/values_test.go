package redisstore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
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

// denying binds a rule of an hour and a day, which denies what cannot be read, to a name of
// its own.
func denying(t *testing.T, client redisstore.Client) (b core.Counters, name string, clock *storetest.Clock, log *strings.Builder) {
	t.Helper()
	log, clock = new(strings.Builder), storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	opts := []redisstore.Option{redisstore.Timeout(patience), redisstore.Clock(clock.Now), redisstore.Log(slog.New(slog.NewTextHandler(log, nil))), redisstore.WithoutDenialCache()}
	limiter := strings.NewReplacer("/", ".", "#", ".").Replace(t.Name())
	rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{{Quota: 50, Window: 24 * time.Hour}, core.PerHour(5)}, DenyUnreadable: true}}
	b, err := redisstore.New(client, opts...).Open(limiter, rules)
	if err != nil {
		t.Fatal(err)
	}
	return b, core.StoreRule{Name: "r"}.StoredKey(limiter, []byte("k")), clock, log
}

func takeTwo(t *testing.T, b core.Counters) *core.Batch {
	t.Helper()
	batch := one("k", 1, 2)
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
		t.Fatal(err)
	}
	return batch
}

// A value that cannot be read denies its key for the shortest window of its
// rule, and the key begins anew then.
func TestForeignValuesDenyTheirKey(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	for _, command := range [][]string{{"SET", "", "abc"}, {"SET", "", ""}, {"RPUSH", "", "a", "b"}, {"HSET", "", "a", "b"}, {"SADD", "", "a"}, {"SET", "", "\x01old"}} {
		t.Run(command[0], func(t *testing.T) {
			b, name, clock, log := denying(t, client)
			command[1] = name
			server.MustDo(command...)
			for range 3 {
				batch := one("k", 1, 2)
				if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed {
					t.Fatalf("allowed %v, error %v", batch.Allowed, err)
				}
				for _, r := range batch.Items[0].Results {
					if want := time.Duration(1_764_000_123_456_789+3600e6-clock.Now().UnixMicro()) * time.Microsecond; r.Allowed || r.Remaining != 0 || r.RetryAfter != want || r.ResetAfter != want || r.MoreAfter != want {
						t.Errorf("%+v, want %v to wait", r, want)
					}
				}
				if err := storetest.Do(t.Context(), b, core.OpRefund, batch); err != nil { // of nothing
					t.Fatal(err)
				}
				clock.Advance(time.Minute)
			}
			if got := log.String(); strings.Count(got, "cannot be read") != 1 || !strings.Contains(got, name) || !strings.Contains(got, "action=deny") {
				t.Errorf("logged %q", got)
			}
			if ttl, _ := strconv.Atoi(strings.TrimPrefix(server.MustDo("PTTL", name), ":")); ttl <= 0 || ttl > 3_700_000 {
				t.Errorf("the lifetime is %d ms", ttl)
			}
			clock.Advance(57*time.Minute - time.Microsecond)
			if takeTwo(t, b).Allowed {
				t.Error("allowed before an hour has passed")
			}
			clock.Advance(time.Microsecond)
			if batch := takeTwo(t, b); !batch.Allowed || batch.Items[0].Results[1].Remaining != 4 {
				t.Errorf("after an hour: %+v", batch.Items[0].Results)
			}
		})
	}
}

// A clock that is set back locks nobody out by the mark of such a denial.
func TestADenialOfAForeignValueAheadOfTheClock(t *testing.T) {
	server := redistest.Start(t)
	b, name, clock, _ := denying(t, newClient(t, server.Addr))
	server.MustDo("SET", name, "abc")
	if takeTwo(t, b).Allowed {
		t.Fatal("allowed")
	}
	clock.Advance(-59 * time.Minute)
	if takeTwo(t, b).Allowed {
		t.Error("allowed when the clock was set back by less than a window")
	}
	clock.Advance(-time.Minute)
	if batch := takeTwo(t, b); !batch.Allowed {
		t.Errorf("denied when the clock was set back by a window: %+v", batch.Items[0].Results)
	}
}

// A refund gives nothing to a value that cannot be read, and does not begin the
// time for which the value denies its key.
func TestARefundLeavesAForeignValueAsItIs(t *testing.T) {
	server := redistest.Start(t)
	b, name, clock, _ := denying(t, newClient(t, server.Addr))
	server.MustDo("SET", name, "abc")
	batch := one("k", 1, 2)
	batch.Items[0].At = clock.Now().UnixMicro()
	if err := storetest.Do(t.Context(), b, core.OpRefund, batch); err != nil {
		t.Fatal(err)
	}
	if got := server.MustDo("GET", name); got != "abc" {
		t.Errorf("the value became %q, want what was there", got)
	}
}

// The value of a newer version is never replaced, whatever the choice is.
func TestTheValueOfANewerVersionIsKept(t *testing.T) {
	server := redistest.Start(t)
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience))
	name := core.StoreRule{Name: "r"}.StoredKey(t.Name(), []byte("k"))
	server.MustDo("SET", name, "\x03of a newer version", "PX", "50000")
	for range 3 {
		batch := take(t, b, "k")
		if batch.Allowed || batch.Items[0].Results[0].RetryAfter != time.Hour {
			t.Errorf("%+v", batch.Items[0].Results)
		}
		batch.Items[0].At = 1
		if err := storetest.Do(t.Context(), b, core.OpRefund, batch); err != nil {
			t.Fatal(err)
		}
	}
	if got := server.MustDo("GET", name); got != "\x03of a newer version" {
		t.Errorf("the value became %q", got)
	}
	if ttl, _ := strconv.Atoi(strings.TrimPrefix(server.MustDo("PTTL", name), ":")); ttl <= 0 || ttl > 50_000 {
		t.Errorf("the lifetime became %d ms", ttl)
	}
}

// A record of a kind that a later version has added is kept until it expires.
func TestRecordsOfUnknownKindsAreKept(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	b := bind(t, client, hourly, redisstore.Timeout(patience), redisstore.Clock(clock.Now))
	name := core.StoreRule{Name: "r"}.StoredKey(t.Name(), []byte("k"))
	expiry := clock.Now().Add(30 * time.Hour).UnixMicro()
	record := "\x0f\x00\x00"
	for i := range 7 {
		record += string([]byte{byte(expiry >> (8 * i))})
	}
	record += "\x2cunknown"
	take(t, b, "k")
	server.MustDo("SET", name, server.MustDo("GET", name)+record, "PX", "5000000")
	for range 2 {
		if batch := take(t, b, "k"); !batch.Allowed {
			t.Errorf("%+v", batch.Items[0].Results)
		}
	}
	if got := server.MustDo("GET", name); !strings.HasSuffix(got, record) {
		t.Errorf("the record is gone: %q", got)
	}
	if ttl, _ := strconv.Atoi(strings.TrimPrefix(server.MustDo("PTTL", name), ":")); ttl < 29*3600*1000 {
		t.Errorf("the lifetime is %d ms, the record's is 30 hours", ttl)
	}
	if got := take(t, b, "k").Items[0].Results[0].Remaining; got != 6 {
		t.Errorf("%d left of 10 after 4 takes", got)
	}
	server.MustDo("PERSIST", name) // and heals with the lifetime of the record
	if err := storetest.Do(t.Context(), b, core.OpTake, one("k", 0, 1)); err != nil {
		t.Fatal(err)
	}
	if ttl, _ := strconv.Atoi(strings.TrimPrefix(server.MustDo("PTTL", name), ":")); ttl < 29*3600*1000 {
		t.Errorf("the lifetime healed to %d ms", ttl)
	}
	// The program that wrote the record may have a clock that is a minute late.
	clock.Advance(30*time.Hour + time.Minute - time.Microsecond)
	take(t, b, "k")
	if got := server.MustDo("GET", name); !strings.HasSuffix(got, record) {
		t.Errorf("the record is gone before a minute has passed since it expired: %q", got)
	}
	clock.Advance(time.Microsecond)
	take(t, b, "k")
	if got := server.MustDo("GET", name); len(got) != 33 {
		t.Errorf("%d bytes are stored after the record has expired", len(got))
	}
}

// However many programs count under one name, a value does not grow without
// bound.
func TestAValueKeepsABoundedPartOfOthers(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	at := func(i int) core.Counters {
		rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{{Quota: core.MaxLogQuota, Window: time.Duration(i+1) * time.Hour, Algorithm: core.SlidingLog}}}}
		b, err := redisstore.New(client, redisstore.Timeout(patience), redisstore.AnotherInstance()).Open("bounded", rules)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for i := range 60 {
		if err := storetest.Do(t.Context(), at(i), core.OpTake, one("few", 1, 1)); err != nil {
			t.Fatal(err)
		}
		if err := storetest.Do(t.Context(), at(i), core.OpTake, one("many", 9_000, 1)); err != nil {
			t.Fatal(err)
		}
	}
	size := func(key string) int {
		return len(server.MustDo("GET", core.StoreRule{Name: "r"}.StoredKey("bounded", []byte(key))))
	}
	if n := size("few"); n < 30*26 || n > 34*30 {
		t.Errorf("%d bytes of 60 limits", n)
	}
	if n := size("many"); n > 350_000 {
		t.Errorf("%d bytes of 60 limits with 9,000 hits each", n)
	}
	for i, want := range map[int]int64{58: 1, 40: 1, 0: 0} { // those that expire last are kept
		batch := one("few", 0, 1)
		if err := storetest.Do(t.Context(), at(i), core.OpTake, batch); err != nil {
			t.Fatal(err)
		}
		if used := core.MaxLogQuota - batch.Items[0].Results[0].Remaining; used != want {
			t.Errorf("limit %d has %d hits, want %d", i, used, want)
		}
	}
}

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

// scriptMemory returns how many bytes the server's script interpreter has.
func scriptMemory(t *testing.T, server *redistest.Server) int {
	t.Helper()
	for line := range strings.Lines(server.MustDo("INFO", "memory")) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), "used_memory_lua:"); found {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the server does not tell the memory of its scripts")
	return 0
}

// A value that is far longer than any of the store's is not read, neither by a
// take nor by a peek, whatever its first byte is; and a take replaces it.
func TestALongForeignValueIsNotRead(t *testing.T) {
	t.Parallel()
	const long = 64 << 20
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	quiet := redisstore.Log(slog.New(slog.DiscardHandler))
	for what, rules := range map[string][]core.StoreRule{
		"one limit":  {{Name: "r", Limits: []core.Limit{core.PerHour(10)}}},
		"two limits": {{Name: "r", Limits: []core.Limit{core.PerHour(10), {Quota: 10, Window: 24 * time.Hour}}}},
		"denying":    {{Name: "r", Limits: []core.Limit{core.PerHour(10)}, DenyUnreadable: true}},
	} {
		for _, first := range []string{"x", "\x02", "\x03"} {
			t.Run(fmt.Sprintf("%s/%x", what, first), func(t *testing.T) {
				b := bind(t, client, rules, redisstore.Timeout(patience), quiet)
				limits := len(rules[0].Limits)
				name := stored(t, "k")
				server.MustDo("SET", name, first)
				server.MustDo("SETRANGE", name, strconv.Itoa(long), "x")
				before := scriptMemory(t, server)
				for range 3 {
					peek := one("k", 1, limits)
					if err := storetest.Do(t.Context(), b, core.OpPeek, peek); err != nil {
						t.Fatal(err)
					}
				}
				batch := one("k", 1, limits)
				if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed != (what != "denying") {
					t.Fatalf("allowed %v, error %v", batch.Allowed, err)
				}
				if grown := scriptMemory(t, server) - before; grown > long/4 {
					t.Errorf("the script's memory has grown by %d bytes: it has read the value", grown)
				}
				if size := server.MustDo("STRLEN", name); len(size) > len(":100") {
					t.Errorf("the value has %s bytes after a take", size)
				}
			})
		}
	}
}

// A value of the format is read up to the length that programs of several limits
// can reach, and not above.
func TestHowLongAValueMayBe(t *testing.T) {
	const most = 1<<20 + 80<<10 // of a rule of one limit
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	quiet := redisstore.Log(slog.New(slog.DiscardHandler))
	for size, readable := range map[int]bool{most: true, most + 1: false} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			b := bind(t, client, hourly, redisstore.Timeout(patience), quiet)
			take(t, b, "k")
			value := []byte(server.MustDo("GET", stored(t, "k")))
			value = append(value, foreignRecord(size-len(value), time.Now().Add(time.Hour))...)
			if len(value) != size {
				t.Fatalf("%d bytes, want %d", len(value), size)
			}
			server.MustDo("SET", stored(t, "k"), string(value))
			want := int64(9)
			if readable {
				want = 8
			}
			if got := take(t, b, "k").Items[0].Results[0].Remaining; got != want {
				t.Errorf("%d remain of 10 after two hits, want %d", got, want)
			}
		})
	}
}

// foreignRecord returns a record of so many bytes, of a limit that no rule of the
// tests has.
func foreignRecord(size int, expires time.Time) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(size-3))[:3]
	b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(expires.UnixMicro()))[:7]...)
	b = append(b, 44) // the kind
	return append(b, make([]byte, size-len(b))...)
}

// lifetime returns the lifetime of a stored value.
func lifetime(server *redistest.Server, name string) time.Duration {
	n, _ := strconv.ParseInt(strings.TrimPrefix(server.MustDo("PTTL", name), ":"), 10, 64)
	return time.Duration(n) * time.Millisecond
}

// The time of a decision is the server's, in microseconds.
func TestTheServersTimeDecides(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	now := func() int64 {
		at, err := client.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMicro()
	}
	before := now()
	at := take(t, b, "k").Items[0].At
	if after := now(); at < before || at > after {
		t.Errorf("decided at %d, between %d and %d", at, before, after)
	}
}

// A state lives as long as it counts, and a minute longer if the application's
// clock decides, which may be late.
func TestAStateLivesAMinuteLongerThanItCounts(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	const day, window = 24 * time.Hour, 300 * 24 * time.Hour
	limits := []core.Limit{
		{Quota: 5, Window: window},
		{Quota: 5, Window: window, Algorithm: core.FixedWindow},
		{Quota: 5, Window: window, Algorithm: core.BucketedWindow, Precision: window / 10},
		{Quota: 5, Window: window, Algorithm: core.SlidingLog},
		{Quota: 5, Window: window, Algorithm: core.TokenBucket},
		{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: day, Factor: 2, Max: 2 * day, Decay: 50 * day}},
		{Quota: 6, Window: window, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: day, Factor: 2, Max: 2 * day, Decay: 50 * day}},
	}
	for i, l := range limits {
		for _, more := range [][]core.Limit{nil, {core.PerSecond(9)}} {
			t.Run(fmt.Sprint(i, len(more)), func(t *testing.T) {
				b := bind(t, client, []core.StoreRule{{Name: "r", Limits: append([]core.Limit{l}, more...)}}, redisstore.Timeout(patience), redisstore.Clock(clock.Now))
				batch := one("k", 5, 1+len(more))
				if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
					t.Fatal(batch.Allowed, err)
				}
				ends := l.Window // when the state means nothing any more
				switch l.Algorithm {
				case core.SlidingWindow:
					ends = 2 * window
				case core.BucketedWindow:
					at := clock.Now().UnixMicro()
					ends += time.Duration(l.Precision.Microseconds()-at%l.Precision.Microseconds()) * time.Microsecond
				}
				if l.Lockout.First > 0 && l.Quota == 5 { // the wait, and the time after which it is forgotten
					ends = l.Lockout.First + l.Lockout.Decay
				}
				if got := lifetime(server, stored(t, "k")); got <= ends+30*time.Second || got > ends+time.Minute+time.Millisecond {
					t.Errorf("lifetime %v, want %v and a minute", got, ends)
				}
			})
		}
	}
}
