package redisstore_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
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

// names returns all names that the server has, sorted.
func names(t *testing.T, b core.Counters, server *redistest.Server, keys ...string) []string {
	t.Helper()
	for _, k := range keys {
		take(t, b, k)
	}
	var found []string
	for i := range 16 { // SCAN's reply is nested; RANDOMKEY's is not
		for range 64 {
			name := server.MustDo("RANDOMKEY")
			if !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
		if i > 0 && strconv.Itoa(len(found)) == strings.TrimPrefix(server.MustDo("DBSIZE"), ":") {
			break
		}
	}
	slices.Sort(found)
	return found
}

// What is stored where, for as long as the major version is one.
func TestStoredNames(t *testing.T) {
	server := redistest.Start(t)
	b, err := redisstore.New(newClient(t, server.Addr), redisstore.Timeout(patience)).Open("api", hourly)
	if err != nil {
		t.Fatal(err)
	}
	got := names(t, b, server, "", "192.0.2.1", "a b\r\n{c}")
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
		"padded":   {"SET", name, "5 "},
		"version":  {"SET", name, "\x01" + valid[1:]},
		"cut":      {"SET", name, valid[:len(valid)-1]},
		"longer":   {"SET", name, valid + "\x00"},
		"huge log": {"SET", name, "\x01\x06" + valid[2:8] + "\xff\xff"},
		"list":     {"RPUSH", name, "a", "b"},
		"hash":     {"HSET", name, "a", "b"},
		"set":      {"SADD", name, "a"},
	}
	for i := 1; i < len(valid); i += 3 { // one byte wrong: any answer will do, but no error, and not for ever
		foreign[fmt.Sprint("byte ", i)] = []string{"SET", name, valid[:i] + "\xff" + valid[i+1:]}
	}
	for what, command := range foreign {
		server.MustDo("DEL", name)
		server.MustDo(command...)
		batch := one("k", 1, 5)
		if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if strings.HasPrefix(what, "byte") {
			for _, r := range batch.Items[0].Results {
				if r.RetryAfter > 200*time.Hour && r.RetryAfter != core.Never {
					t.Errorf("%s: locked out for %v", what, r.RetryAfter)
				}
			}
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

// The lifetime is that of the state and the slack, and the state of windows of
// a millisecond has one too.
func TestLifetimes(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	for _, c := range []struct {
		limit core.Limit
		most  time.Duration
	}{
		{core.Limit{Quota: 5, Window: time.Millisecond}, 2 * time.Millisecond},
		{core.Limit{Quota: 5, Window: core.MaxWindow, Algorithm: core.FixedWindow}, core.MaxWindow},
		{core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.TokenBucket}, 12*time.Minute + time.Millisecond},
		{core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.SlidingLog}, time.Hour},
		{core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute}, time.Hour + time.Minute},
	} {
		t.Run(c.limit.String(), func(t *testing.T) {
			b, err := redisstore.New(client, redisstore.Timeout(patience), redisstore.AnotherInstance()).Open("ttl", []core.StoreRule{{Name: "r", Limits: []core.Limit{c.limit}}})
			if err != nil {
				t.Fatal(err)
			}
			take(t, b, t.Name())
			ttl, _ := strconv.ParseInt(strings.TrimPrefix(server.MustDo("PTTL", core.StoreRule{Name: "r"}.StoredKey("ttl", []byte(t.Name()))), ":"), 10, 64)
			if got := time.Duration(ttl) * time.Millisecond; got <= 0 || got > c.most+time.Second {
				t.Errorf("lifetime %v, want at most %v and a second", got, c.most)
			}
		})
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

func (f *formatted) value() []byte            { return []byte(f.server.MustDo("GET", stored(f.t, "k"))) }
func (f *formatted) set(value []byte)         { f.server.MustDo("SET", stored(f.t, "k"), string(value)) }
func (f *formatted) in(d time.Duration) int64 { return f.clock.Now().Add(d).UnixMicro() }

// record returns a record with this expiry, kind and body.
func record(expiry int64, kind byte, body ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(8+len(body)))[:3]
	b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(expiry))[:7]...)
	return append(append(b, kind), body...)
}

var hour = core.PerHour(10)

// A key that nobody has used is admitted, and nothing is logged of it.
func TestANewKeyIsReadable(t *testing.T) {
	server := redistest.Start(t)
	for i, limits := range [][]core.Limit{{hour}, {hour, core.Limit{Quota: 10, Window: 24 * time.Hour}}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			f := newFormatted(t, server, limits...)
			if b := f.take(); !b.Allowed || f.log.Len() > 0 {
				t.Errorf("allowed %v, %+v; the log:\n%s", b.Allowed, b.Items[0].Results, &f.log)
			}
		})
	}
}

// A value in another format denies its key: an empty one, one as long as a state, and one of
// another version.
func TestForeignValuesDenyAKeyOfOneLimit(t *testing.T) {
	server := redistest.Start(t)
	for i, value := range []string{"", "abc", strings.Repeat("x", 33), strings.Repeat("\x02", 33), "\x01", "\x10"} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			f := newFormatted(t, server, hour)
			f.set([]byte(value))
			if b := f.take(); b.Allowed || b.Items[0].Results[0].RetryAfter != time.Hour {
				t.Errorf("allowed %v, %+v", b.Allowed, b.Items[0].Results)
			}
		})
	}
}

// Versions 3 to 15 are of newer programs: the value denies its key, and stays. Any
// other version is somebody else's.
func TestWhichVersionsAreNewer(t *testing.T) {
	server := redistest.Start(t)
	for version, newer := range map[byte]bool{0: false, 1: false, 3: true, 4: true, 15: true, 16: false, 255: false} {
		for _, limits := range [][]core.Limit{{hour}, {hour, core.Limit{Quota: 10, Window: 24 * time.Hour}}} {
			t.Run(fmt.Sprint(version, len(limits)), func(t *testing.T) {
				f := newFormatted(t, server, limits...)
				f.take()
				value := f.value()
				value[0] = version
				f.set(value)
				if b := f.take(); b.Allowed || b.Items[0].Results[0].RetryAfter != time.Hour {
					t.Errorf("allowed %v, %+v", b.Allowed, b.Items[0].Results)
				}
				if stays := string(f.value()) == string(value); stays != newer {
					t.Errorf("the value stays: %v", stays)
				}
			})
		}
	}
}

// The mark that denies a key in place of a value that cannot be read is a record
// of kind 126 with the length of the time. The format is a contract with other
// versions.
func TestTheMarkOfAValueThatCannotBeRead(t *testing.T) {
	server := redistest.Start(t)
	f := newFormatted(t, server, hour)
	f.set([]byte("abc"))
	f.take()
	length := binary.LittleEndian.AppendUint64(nil, uint64(time.Hour.Microseconds()))[:6]
	mark := record(f.in(time.Hour), 126, length...)
	if want := append([]byte{2}, mark...); string(f.value()) != string(want) {
		t.Errorf("stored %x, want %x", f.value(), want)
	}
	// A write keeps the mark and what is behind it as they are.
	other := record(f.in(2*time.Hour), 44, 'x', 'y')
	f.set(append(append([]byte{2}, mark...), other...))
	batch := one("k", 1, 1)
	batch.Items[0].At = f.in(0)
	if err := storetest.Do(t.Context(), f.bound, core.OpRefund, batch); err != nil {
		t.Fatal(err)
	}
	if want := append(append([]byte{2}, mark...), other...); string(f.value()) != string(want) {
		t.Errorf("a write has made %x of it, want %x", f.value(), want)
	}
	// One byte too many, and it is no mark.
	f.set(append([]byte{2}, record(f.in(time.Minute), 126, append(length, 0)...)...))
	if b := f.take(); b.Allowed || b.Items[0].Results[0].RetryAfter != time.Hour {
		t.Errorf("a mark of another length: allowed %v, %+v", b.Allowed, b.Items[0].Results)
	}
}

// Records of others may have no body. Those that are cut, or shorter than their
// head, make the value unreadable.
func TestTheShortestRecords(t *testing.T) {
	server := redistest.Start(t)
	for name, c := range map[string]struct {
		behind   func(f *formatted) []byte
		readable bool
	}{
		"no body":       {func(f *formatted) []byte { return record(f.in(time.Hour), 44) }, true},
		"a byte":        {func(f *formatted) []byte { return record(f.in(time.Hour), 44, 'x') }, true},
		"two records":   {func(f *formatted) []byte { return append(record(f.in(time.Hour), 44), record(f.in(time.Hour), 46)...) }, true},
		"a byte short":  {func(f *formatted) []byte { r := record(f.in(time.Hour), 44, 'x'); return r[:len(r)-1] }, false},
		"no kind":       {func(f *formatted) []byte { r := record(f.in(time.Hour), 44); r[0]--; return r[:len(r)-1] }, false},
		"half a head":   {func(f *formatted) []byte { return record(f.in(time.Hour), 44)[:5] }, false},
		"a single byte": {func(*formatted) []byte { return []byte{9} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFormatted(t, server, hour)
			f.take()
			behind := c.behind(f)
			f.set(append(f.value(), behind...))
			if b := f.take(); b.Allowed != c.readable || c.readable && b.Items[0].Results[0].Remaining != 8 {
				t.Errorf("allowed %v, %+v", b.Allowed, b.Items[0].Results)
			}
			if c.readable && !strings.HasSuffix(string(f.value()), string(behind)) {
				t.Errorf("a write has lost %x", behind)
			}
		})
	}
}

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

// States that no program writes make the value unreadable: counts above the
// largest quota, more buckets than a window has, a sum that is wrong, a length
// that does not fit.
func TestStatesThatNoProgramWrites(t *testing.T) {
	server := redistest.Start(t)
	bucketed := core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: 20 * time.Minute}
	fixed := core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow}
	lockout := core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour, Decay: time.Hour}}
	token := core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket}
	log := core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.SlidingLog}
	u32 := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	const above = 1 << 31
	put := func(at int, b []byte) func([]byte) []byte {
		return func(v []byte) []byte { return append(append(append([]byte(nil), v[:at]...), b...), v[at+len(b):]...) }
	}
	buckets := func(total uint32, counts ...uint32) func([]byte) []byte {
		return func(v []byte) []byte {
			v = append(append([]byte(nil), v[:24+7]...), u32(total)...)
			v = append(v, byte(len(counts)), 0)
			for _, c := range counts {
				v = append(v, u32(c)...)
			}
			v[1] = byte(len(v) - 4)
			return v
		}
	}
	for name, c := range map[string]struct {
		limit    core.Limit
		change   func(v []byte) []byte
		readable bool
	}{
		"sliding, hits":                    {hour, put(25, u32(above)), false},
		"sliding, hits before":             {hour, put(29, u32(above)), false},
		"sliding, most hits before":        {hour, put(29, u32(above-1)), true},
		"fixed, hits":                      {fixed, put(25, u32(above)), false},
		"fixed, hits before":               {fixed, put(29, u32(above)), false},
		"buckets, as many as there may be": {bucketed, buckets(4, 1, 1, 1, 1), true},
		"buckets, as many hits as may be":  {bucketed, buckets(above-1, above-2, 1), true},
		"buckets, one too many":            {bucketed, buckets(5, 1, 1, 1, 1, 1), false},
		"buckets, another sum":             {bucketed, buckets(3, 1, 1, 1, 1), false},
		"buckets, a sum above all":         {bucketed, buckets(above, above-1, 1), false},
		"buckets, none":                    {bucketed, buckets(0), true},
		"buckets, one too few bytes":       {bucketed, func(v []byte) []byte { v[1]--; return v[:len(v)-1] }, false},
		"buckets, half a head":             {bucketed, func(v []byte) []byte { v[1] -= 10; return v[:len(v)-10] }, false},
		"buckets, a length":                {bucketed, func(v []byte) []byte { v[24+7+4]++; return v }, false},
		"lockout, hits":                    {lockout, put(25, u32(above)), false},
		"lockout, most hits":               {lockout, put(25, u32(above-1)), true},
		"lockout, most strikes":            {lockout, put(29, u32(64)), true},
		"lockout, strikes":                 {lockout, put(29, u32(65)), false},
		"fixed, most hits":                 {fixed, put(25, u32(above-1)), true},
		"token, the largest rate":          {token, put(29, u32(above-1)), true},
		"token, the part that none has":    {token, put(25, u32(above-1)), false},
		"token, a rate of 0":               {token, put(29, u32(0)), false},
		"token, a rate above all":          {token, put(29, u32(above)), false},
		"token, a part above its rate":     {token, put(25, u32(10)), false},
		"token, the largest part":          {token, put(25, u32(9)), true},
		"log, none":                        {log, func(v []byte) []byte { v[1], v[18] = v[1]-7, 0; return v[:len(v)-7] }, true},
		"log, half a count":                {log, func(v []byte) []byte { v[1] -= 8; return v[:len(v)-8] }, false},
		"log, a length":                    {log, func(v []byte) []byte { v[18]++; return v }, false},
		"sliding, a length":                {hour, func(v []byte) []byte { v[1]++; return v }, false},
	} {
		for _, more := range [][]core.Limit{nil, {core.PerSecond(100)}} {
			t.Run(fmt.Sprint(name, len(more)), func(t *testing.T) {
				f := newFormatted(t, server, append([]core.Limit{c.limit}, more...)...)
				f.take()
				value := f.value()
				own := 4 + int(value[1]) // the state, and behind it that of the other limit
				changed := c.change(append([]byte(nil), value[:own]...))
				f.set(append(changed, value[own:]...))
				b := f.take()
				r := b.Items[0].Results[0]
				if denied := !b.Allowed && r.RetryAfter == shortest(c.limit, more) && f.log.Len() > 0; denied == c.readable {
					t.Errorf("allowed %v, %+v; %x; the log:\n%s", b.Allowed, r, changed, &f.log)
				}
			})
		}
	}
}

func shortest(l core.Limit, more []core.Limit) time.Duration {
	if len(more) > 0 {
		return more[0].Window
	}
	return l.Window
}
