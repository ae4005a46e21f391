package redisstore_test

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
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
