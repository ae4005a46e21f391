package memcachedstore_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

func TestItemsOutliveTheirWindows(t *testing.T) {
	server := memcachedtest.Start(t)
	for window, want := range map[time.Duration]string{
		time.Millisecond:               "t=3",
		time.Second:                    "t=3",
		time.Second + time.Millisecond: "t=4",
		24 * time.Hour:                 "t=86402",
	} {
		l := newLimiter(t, newStore(t, []string{server.Addr}), fmt.Sprint("ttl", window.Microseconds()), core.Limit{Quota: 5, Window: window, Algorithm: core.FixedWindow})
		d, err := take(l, "k")
		if err != nil {
			t.Fatal(err)
		}
		reply := server.MustDo("mg " + d.StoredKey() + " t")
		if got := strings.Fields(strings.Replace(reply, " t", " t=", 1)); len(got) < 2 || got[1] != want && got[1] != want[:2]+fmt.Sprint(atoi(want[2:])-1) {
			t.Errorf("window %v: %q, want %s", window, reply, want)
		}
	}
}

func atoi(s string) (n int) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

func TestLimitsOfMoreThanThirtyDays(t *testing.T) {
	const day = 24 * time.Hour
	s := newStore(t, []string{"127.0.0.1:1"})
	for i, l := range []core.Limit{
		{Quota: 1, Window: 31 * day, Algorithm: core.FixedWindow},
		{Quota: 1, Window: 30 * day, Algorithm: core.FixedWindow},
		{Quota: 1, Window: 15 * day},
		{Quota: 2, Window: 20 * day, Algorithm: core.TokenBucket, Burst: 4},
		{Quota: 2, Window: day, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: day, Max: 16 * day, Decay: 16 * day}},
	} {
		_, err := core.New(core.Config{Name: fmt.Sprint("long", i), Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{l}}}})
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `rule "r", limit "r": Window: `+l.Window.String()) {
			t.Errorf("%v: %v", l, err)
		}
	}
	newLimiter(t, s, "short", core.Limit{Quota: 1, Window: 29 * day, Algorithm: core.FixedWindow}, core.Limit{Quota: 1, Window: 14 * day})
}

// A limiter is not reconfigured to a limit that memcached cannot hold.
func TestAReconfigureToMoreThanThirtyDays(t *testing.T) {
	const day = 24 * time.Hour
	fixed := func(window time.Duration) core.Limit {
		return core.Limit{Quota: 3, Window: window, Algorithm: core.FixedWindow}
	}
	l := newLimiter(t, newStore(t, []string{memcachedtest.Start(t).Addr}), "reconfigured", fixed(day))
	for window, fits := range map[time.Duration]bool{
		29 * day: true, memcachedstore.LongestLifetime(): true,
		memcachedstore.LongestLifetime() + time.Millisecond: false, 30 * day: false, 366 * day: false,
	} {
		err := l.Reconfigure(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{fixed(window)}}}})
		if fits && err != nil || !fits && (!errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "Window: "+window.String())) {
			t.Errorf("to %v: %v", window, err)
		}
	}
	if d, err := take(l, "k"); err != nil || !d.Allowed || d.ResetAfter > 30*day {
		t.Errorf("after it: %v, %v", d, err)
	}
}

func TestKeysThatMemcachedRefuses(t *testing.T) {
	l := newLimiter(t, newStore(t, []string{memcachedtest.Start(t).Addr}), "keys", core.PerHour(2))
	for _, key := range []string{"", "a b", "a\r\nset x 0 0 1\r\n1", "\t", "\x00", "\x7f", strings.Repeat("x", 251), strings.Repeat("x", 10_000)} {
		for i := range 3 {
			d, err := take(l, key)
			if err != nil || d.Allowed != (i < 2) {
				t.Errorf("%.20q, take %d: %v, %v", key, i, d, err)
			}
			if name := d.StoredKey(); len(name) > 200 || strings.ContainsAny(name, " \r\n\t\x00") {
				t.Errorf("stored as %q", name)
			}
		}
	}
}

func TestForeignValuesAreReplaced(t *testing.T) {
	addr := memcachedtest.Start(t).Addr
	client := memcache.New(addr)
	defer client.Close() //nolint:errcheck // of no interest any more
	l := newLimiter(t, newStore(t, []string{addr}, memcachedstore.WithoutDenialCache()), "foreign", core.PerHour(5), core.Limit{Quota: 50, Window: 24 * time.Hour})
	d, err := take(l, "k")
	if err != nil {
		t.Fatal(err)
	}
	item, err := client.Get(d.StoredKey())
	if err != nil {
		t.Fatal(err)
	}
	good := item.Value
	for name, value := range map[string][]byte{
		"nothing":   {},
		"text":      []byte("abc"),
		"a number":  []byte("5 "),
		"saturated": []byte("18446744073709551615"),
		"padded":    append(append([]byte(nil), good...), ' '),
		"cut":       good[:len(good)-1],
		"half":      good[:len(good)/2],
		"changed":   append([]byte{good[0], good[1] ^ 1}, good[2:]...),
		"long":      make([]byte, 100_000),
	} {
		for range 4 {
			_, _ = take(l, "k")
		}
		if err := client.Set(&memcache.Item{Key: d.StoredKey(), Value: value, Flags: 7}); err != nil {
			t.Fatal(err)
		}
		if got := left(t, l, "k"); got != 5 {
			t.Errorf("%s: %d left, want 5", name, got)
		}
		if d, err := take(l, "k"); err != nil || !d.Allowed || d.Remaining != 4 {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}

// A limiter that denies what cannot be read does so for the shortest window, once.
func TestForeignValuesDenyTheirKey(t *testing.T) {
	addr := memcachedtest.Start(t).Addr
	client := memcache.New(addr)
	defer client.Close() //nolint:errcheck // of no interest any more
	for name, value := range map[string][]byte{"text": []byte("abc"), "nothing": {}, "long": make([]byte, 100_000)} {
		var log strings.Builder
		clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
		s := newStore(t, []string{addr}, memcachedstore.Clock(clock.Now), memcachedstore.Log(slog.New(slog.NewTextHandler(&log, nil))))
		l := core.Must(core.New(core.Config{Name: "denied-" + name, Store: s, DenyUnreadable: true, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(5), {Quota: 50, Window: 24 * time.Hour}}}}}))
		d, err := take(l, "k")
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		if err := client.Set(&memcache.Item{Key: d.StoredKey(), Value: value}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if d, err := take(l, "k"); err != nil || d.Allowed || d.RetryAfter > time.Hour {
				t.Errorf("%s: %v, %v", name, d, err)
			}
			clock.Advance(time.Minute)
		}
		if got := log.String(); strings.Count(got, "cannot be read") != 1 || !strings.Contains(got, "action=deny") || !strings.Contains(got, d.StoredKey()) {
			t.Errorf("%s: logged %q", name, got)
		}
		clock.Advance(57*time.Minute - time.Microsecond)
		if d, _ := take(l, "k"); d.Allowed {
			t.Errorf("%s: allowed before an hour has passed", name)
		}
		clock.Advance(time.Microsecond)
		if d, err := take(l, "k"); err != nil || !d.Allowed || d.Remaining != 4 {
			t.Errorf("%s: after an hour: %v, %v", name, d, err)
		}
	}
}

// A value that another program wrote is replaced with its flags: a client that
// compresses would read them.
func TestAReplacedItemHasNoFlags(t *testing.T) {
	server := memcachedtest.Start(t)
	l := newLimiter(t, newStore(t, []string{server.Addr}), "flags", core.PerHour(5))
	d, err := take(l, "k")
	if err != nil {
		t.Fatal(err)
	}
	client := memcache.New(server.Addr)
	defer client.Close() //nolint:errcheck // the test is over
	if err := client.Set(&memcache.Item{Key: d.StoredKey(), Value: []byte("foreign"), Flags: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := take(l, "k"); err != nil {
		t.Fatal(err)
	}
	if item, err := client.Get(d.StoredKey()); err != nil || item.Flags != 0 || string(item.Value) == "foreign" {
		t.Errorf("%+v, %v", item, err)
	}
}
