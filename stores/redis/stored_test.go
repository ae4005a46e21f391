package redisstore_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// all is one limit of every algorithm.
func all(quota int64) []core.Limit {
	return []core.Limit{
		{Name: "sliding", Quota: quota, Window: time.Hour},
		{Name: "fixed", Quota: quota, Window: time.Hour, Algorithm: core.FixedWindow},
		{Name: "bucketed", Quota: quota, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
		{Name: "log", Quota: quota, Window: time.Hour, Algorithm: core.SlidingLog},
		{Name: "token", Quota: quota, Window: 100 * time.Hour, Algorithm: core.TokenBucket},
	}
}

// What is stored where, for as long as the major version is one.
func TestStoredNames(t *testing.T) {
	server := redistest.Start(t)
	b, err := redisstore.New(newClient(t, server.Addr), redisstore.Timeout(patience)).Open("api", hourly)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"", "192.0.2.1", "a b\r\n{c}"} {
		take(t, b, k)
	}
	got := newClient(t, server.Addr).Keys(t.Context(), "*").Val()
	slices.Sort(got)
	want := []string{
		"fg1:api:r:47DEQpj8HBSa-_TImW-5JA",
		"fg1:api:r:N_z_JL9iA1srCAIK_Ai0_g",
		"fg1:api:r:lq2cB6uYvOCZkGlaHmqfgQ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("stored under %q, want %q: a name changes only with a major version", got, want)
	}
}

// The format of values: one that an older version wrote is read by a newer one.
func TestStoredValues(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	rules := []core.StoreRule{{Name: "r", Limits: all(5)}}
	b := bind(t, client, rules, redisstore.Timeout(patience), redisstore.Clock(clock.Now))
	batch := one("k", 2, 5)
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
		t.Fatal(err)
	}
	name := core.StoreRule{Name: "r"}.StoredKey("TestStoredValues", []byte("k"))
	const golden = "Ah0AABVV5fVaRAYAAKST1gAAFQ2+SFlEBgIAAAAAAAAAHQAAFbFRH1pEBgIApJPWAAAVDb5IWUQGAgAAAAAAAAAlAAAAebAiWkQGBACkk9YAAACHkwMAAMKbwAEAAAACAAAAAQACAAAAHgAAFbFRH1pEBgYApJPWAAACABUNvkhZRAYVDb5IWUQGHQAAFq3Pz3pEBggAEKzRUwAVrc/PekQGAAAAAAUAAAA="
	value := server.MustDo("GET", name)
	if got := base64.StdEncoding.EncodeToString([]byte(value)); got != golden {
		t.Errorf("stored %s, want %s", got, golden)
	}
	for golden, c := range map[string]struct {
		limit  core.Limit
		spoilt bool // the value cannot be read
	}{
		"AiMAAAD8d9LXRAYMAKAUnW8CCvPh3EgQALw6U3xCBgEAAAAAjScA":     {core.PerMonth(10).In(core.Must(time.LoadLocation("Europe/Berlin"))), false},
		"AiQAABU45SJaRAYKAKST1gAAFQ2+SFlEBgEAAAABAAAAFZRRTFlEBg==": {core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour, Decay: time.Hour}}, false},
		"Ag4AABWxUR9aRAZ+AKST1gAA":                                 {core.PerHour(10), true},
	} {
		f := newFormatted(t, server, c.limit)
		server.MustDo("DEL", stored(t, "k"))
		if c.spoilt {
			f.set([]byte("abc"))
		}
		f.take()
		if got := base64.StdEncoding.EncodeToString(f.value()); got != golden {
			t.Errorf("%v: stored %s, want %s", c.limit, got, golden)
		}
	}
	decoded, _ := base64.StdEncoding.DecodeString(golden)
	server.MustDo("SET", name, string(decoded))
	batch = one("k", 1, 5)
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
		t.Fatal(err)
	}
	for i, r := range batch.Items[0].Results {
		if r.Remaining != 2 {
			t.Errorf("%v: %d left of a stored value with 2 of 5 hits, after one more", rules[0].Limits[i], r.Remaining)
		}
	}
}

// The value of a later version, 3 to 15, denies its key and stays, with its lifetime, whatever is
// asked of it. A value of any other version is somebody else's.
func TestTheValueOfALaterVersionStays(t *testing.T) {
	server := redistest.Start(t)
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience))
	for version, later := range map[byte]bool{0: false, 1: false, 3: true, 15: true, 16: false} {
		for op, fails := range map[core.Op]bool{core.OpTake: false, core.OpRefund: false, core.OpCharge: true, core.OpGrant: true, core.OpBlock: true} {
			for _, life := range []string{"50000", ""} {
				value := string([]byte{version}) + "of another version"
				server.MustDo("DEL", stored(t, "k"))
				server.MustDo("SET", stored(t, "k"), value)
				if life != "" {
					server.MustDo("PEXPIRE", stored(t, "k"), life)
				}
				other := one("other", 1, 1)
				batch := &core.Batch{For: time.Hour, Items: append(one("k", 1, 1).Items, other.Items...)}
				if err := storetest.Do(t.Context(), b, op, batch); (err != nil) != (later && fails) || err != nil && (!errors.Is(err, core.ErrNotCharged) || !strings.Contains(err.Error(), stored(t, "k"))) {
					t.Errorf("version %d, %v: error %v", version, op, err)
				}
				if r := batch.Items[0].Results[0]; op == core.OpTake && batch.Allowed == later || op == core.OpTake && later && r.RetryAfter != time.Hour {
					t.Errorf("version %d: allowed %v, %+v", version, batch.Allowed, r)
				}
				if op == core.OpGrant || op == core.OpRefund {
					continue // which write nothing of somebody else's either
				}
				if got := server.MustDo("GET", stored(t, "k")); (got == value) != later {
					t.Errorf("version %d, %v: the value became %q", version, op, got)
				}
				if ttl := lifetime(server, stored(t, "k")); later && (life == "" && ttl >= 0 || life != "" && (ttl <= 0 || ttl > 50*time.Second)) {
					t.Errorf("version %d, %v: a lifetime of %sms became %v", version, op, life, ttl)
				}
				if got := charged(t, b, "other"); later && got != 0 {
					t.Errorf("version %d, %v: %d charged to the other key", version, op, got)
				}
				if err := storetest.Do(t.Context(), b, core.OpReset, other); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// A value of somebody else's counts as none, and is replaced.
func TestForeignValuesAreReplaced(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	rules := []core.StoreRule{{Name: "r", Limits: all(3)}}
	b := bind(t, client, rules, redisstore.Timeout(patience))
	name := core.StoreRule{Name: "r"}.StoredKey(t.Name(), []byte("k"))
	if err := storetest.Do(t.Context(), b, core.OpTake, one("k", 1, 5)); err != nil {
		t.Fatal(err)
	}
	valid := server.MustDo("GET", name)
	foreign := map[string][]string{
		"empty":    {"SET", name, ""},
		"text":     {"SET", name, "abc"},
		"number":   {"SET", name, "9223372036854775807"},
		"version":  {"SET", name, "\x01" + valid[1:]},
		"cut":      {"SET", name, valid[:len(valid)-1]},
		"longer":   {"SET", name, valid + "\x00"},
		"huge log": {"SET", name, "\x01\x06" + valid[2:8] + "\xff\xff"},
		"list":     {"RPUSH", name, "a", "b"},
	}
	for what, command := range foreign {
		server.MustDo("DEL", name)
		server.MustDo(command...)
		batch := one("k", 1, 5)
		if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for j, r := range batch.Items[0].Results {
			if r.Remaining != 2 {
				t.Errorf("%s: %v: %d left of 3 after the first take", what, rules[0].Limits[j], r.Remaining)
			}
		}
	}
}

// A lifetime that has been taken away comes back, whatever the next
// request is.
func TestALostLifetimeHeals(t *testing.T) {
	server := redistest.Start(t)
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience))
	name := core.StoreRule{Name: "r"}.StoredKey(t.Name(), []byte("k"))
	take(t, b, "k")
	for what, batch := range map[string]*core.Batch{
		"a take":         one("k", 1, 1),
		"a refused take": one("k", 10, 1),
		"a peek":         one("k", 0, 1),
	} {
		server.MustDo("PERSIST", name)
		if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
			t.Fatal(err)
		}
		if ttl, _ := strconv.Atoi(strings.TrimPrefix(server.MustDo("PTTL", name), ":")); ttl <= 0 || ttl > int(2*time.Hour/time.Millisecond)+1000 {
			t.Errorf("after %s the lifetime is %d ms", what, ttl)
		}
	}
}

// A take gives the value the lifetime that it needs, whatever it had.
func TestATakeSetsALifetimeThatIsWrong(t *testing.T) {
	server := redistest.Start(t)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	hour := core.Limit{Quota: 100, Window: time.Hour, Algorithm: core.FixedWindow}
	for what, limits := range map[string][]core.Limit{"one limit": {hour}, "three limits": {core.PerMinute(100), hour, core.PerSecond(100)}} {
		b := bind(t, newClient(t, server.Addr), []core.StoreRule{{Name: "r", Limits: limits}}, redisstore.Timeout(patience), redisstore.Clock(clock.Now))
		name := core.StoreRule{Name: "r"}.StoredKey(t.Name(), []byte(what))
		for _, is := range [][]string{nil, {"PERSIST", name}, {"PEXPIRE", name, "3640000"}, {"PEXPIRE", name, "3680000"}, {"DEL", name}} {
			if is != nil {
				server.MustDo(is...)
			}
			batch := one(what, 1, len(limits))
			if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
				t.Fatal(batch.Allowed, err)
			}
			if ttl, _ := strconv.Atoi(strings.TrimPrefix(server.MustDo("PTTL", name), ":")); ttl < 3_650_000 || ttl > 3_660_000 {
				t.Errorf("%s: %v: the lifetime is %d ms", what, is, ttl)
			}
		}
	}
}

// A denied take does not keep a key alive, and writes nothing.
func TestARefusedTakeWritesNothing(t *testing.T) {
	server := redistest.Start(t)
	b := bind(t, newClient(t, server.Addr), []core.StoreRule{{Name: "r", Limits: all(3)}}, redisstore.Timeout(patience))
	if err := storetest.Do(t.Context(), b, core.OpTake, one("k", 3, 5)); err != nil {
		t.Fatal(err)
	}
	name := core.StoreRule{Name: "r"}.StoredKey(t.Name(), []byte("k"))
	server.MustDo("PEXPIRE", name, "50000000")
	server.MustDo("CONFIG", "RESETSTAT")
	for range 3 {
		batch := one("k", 1, 5)
		if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed {
			t.Fatalf("allowed %v, error %v", batch.Allowed, err)
		}
	}
	stats := server.MustDo("INFO", "commandstats")
	for _, write := range []string{"set", "del", "pexpire"} {
		if strings.Contains(stats, "cmdstat_"+write+":") {
			t.Errorf("refused takes ran %s:\n%s", write, stats)
		}
	}
	if ttl, _ := strconv.Atoi(strings.TrimPrefix(server.MustDo("PTTL", name), ":")); ttl > 50_000_000 {
		t.Errorf("the lifetime became %d ms", ttl)
	}
}

// One command a decision for three limits of two keys.
func TestThreeLimitsOfTwoKeysAreOneCommand(t *testing.T) {
	server := redistest.Start(t)
	limits := []core.Limit{core.PerSecond(10), core.PerMinute(120), core.PerHour(240)}
	b := bind(t, newClient(t, server.Addr), []core.StoreRule{{Name: "ip", Limits: limits}, {Name: "user", Limits: limits}}, redisstore.Timeout(patience))
	batch := &core.Batch{Items: []core.Item{
		{Rule: 0, Key: []byte("192.0.2.1"), Cost: 1, Results: make([]core.Result, 3)},
		{Rule: 1, Key: []byte("alice"), Cost: 1, Results: make([]core.Result, 3)},
	}}
	if err := storetest.Do(context.Background(), b, core.OpTake, batch); err != nil {
		t.Fatal(err)
	}
	server.MustDo("CONFIG", "RESETSTAT")
	const n = 7
	for range n {
		if err := storetest.Do(context.Background(), b, core.OpTake, batch); err != nil || !batch.Allowed {
			t.Fatalf("allowed %v, error %v", batch.Allowed, err)
		}
	}
	stats := server.MustDo("INFO", "commandstats")
	if !strings.Contains(stats, fmt.Sprintf("cmdstat_evalsha:calls=%d,", n)) || strings.Contains(stats, "cmdstat_eval:") {
		t.Errorf("%d decisions made:\n%s", n, stats)
	}
}

// formatted is a rule of these limits on a store that denies what it cannot read.
type formatted struct {
	t      *testing.T
	server *redistest.Server
	bound  core.Counters
	clock  *storetest.Clock
	limits int
	log    strings.Builder
}

func newFormatted(t *testing.T, server *redistest.Server, limits ...core.Limit) *formatted {
	f := &formatted{t: t, server: server, clock: storetest.NewClock(time.UnixMicro(1_764_000_123_456_789)), limits: len(limits)}
	f.bound = bind(t, newClient(t, server.Addr), []core.StoreRule{{Name: "r", Limits: limits, DenyUnreadable: true}},
		redisstore.Timeout(patience), redisstore.Clock(f.clock.Now), redisstore.Log(slog.New(slog.NewTextHandler(&f.log, nil))))
	return f
}

func (f *formatted) take() *core.Batch {
	f.t.Helper()
	batch := one("k", 1, f.limits)
	if err := storetest.Do(f.t.Context(), f.bound, core.OpTake, batch); err != nil {
		f.t.Fatal(err)
	}
	return batch
}

func (f *formatted) value() []byte    { return []byte(f.server.MustDo("GET", stored(f.t, "k"))) }
func (f *formatted) set(value []byte) { f.server.MustDo("SET", stored(f.t, "k"), string(value)) }

var hour = core.PerHour(10)

// A write keeps 32 records of others and 262,144 bytes of them, and not one more: of too
// many those that expire last. If all are kept, they stay in their order.
func TestHowMuchOfOthersAWriteKeeps(t *testing.T) {
	server := redistest.Start(t)
	for name, c := range map[string]struct {
		sizes []int // of the records, which expire one after the other
		kept  int
	}{
		"32 records":          {slices.Repeat([]int{20}, 32), 32},
		"33 records":          {slices.Repeat([]int{20}, 33), 32},
		"262,144 bytes":       {[]int{131_072, 131_072}, 2},
		"262,145 bytes":       {[]int{131_072, 131_073}, 1},
		"262,144 of the last": {[]int{20, 131_072, 131_072}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFormatted(t, server, hour)
			f.take()
			own := f.value()
			var others []byte
			for i, size := range c.sizes {
				others = append(others, foreignRecord(size, f.clock.Now().Add(time.Duration(i+1)*time.Hour))...)
			}
			f.set(slices.Concat(own, others))
			f.take()
			kept, at := 0, len(own)
			v := f.value()
			for ; at < len(v); kept++ {
				at += 3 + int(v[at]) + int(v[at+1])<<8 + int(v[at+2])<<16
			}
			if kept != c.kept {
				t.Errorf("%d of %d records are kept, want %d", kept, len(c.sizes), c.kept)
			}
			if kept == len(c.sizes) && !bytes.HasSuffix(v, others) {
				t.Error("the records are in another order")
			}
		})
	}
}

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
