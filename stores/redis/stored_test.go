package redisstore_test

import (
	"context"
	"encoding/base64"
	"fmt"
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
