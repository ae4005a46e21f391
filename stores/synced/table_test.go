package synced_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// Of the counters that are examined, those with the most hits that were not pushed are
// kept, and of those that the backend has, the ones with the highest counts.
func TestEvictionKeepsWhatIsPrecious(t *testing.T) {
	for name, row := range map[string]struct {
		keys, rounds int // new ones, and how often, with an exchange before each round
		later        time.Duration
	}{
		"not pushed": {5000, 1, 0}, "not pushed, of the window before": {5000, 1, time.Millisecond},
		"pushed": {32, 100, 0}, "pushed, of the window before": {32, 100, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(day - time.Millisecond) // since midnight
				b := newShared()
				s := newStore(t, b, synced.Config{Interval: time.Hour, MaxKeys: 64 * 8, Log: quiet})
				l := newLimiter(t, s, aligned(10_000, day))
				d, err := l.Take(t.Context(), 5, core.Hit{Rule: "r", Key: "refunded"})
				if err = errors.Join(err, s.Sync(t.Context()), l.Adjust(t.Context(), d, 0)); err != nil {
					t.Fatal(err)
				}
				if _, err := l.Take(t.Context(), 1000, core.Hit{Rule: "r", Key: "precious"}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(row.later)
				left(t, l, "precious")
				for round := range row.rounds {
					if row.rounds > 1 {
						if err := s.Sync(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					for i := range row.keys {
						take(t, l, fmt.Sprint(round, " ", i))
					}
				}
				if st := s.Stats(); st.Keys > 64*8 || row.rounds > 1 && st.Lost > 0 {
					t.Errorf("%+v", st)
				}
				if got := left(t, l, "precious"); got != 9000 {
					t.Errorf("%d left of the key with 1,000 hits of 10,000, want 9,000", got)
				}
				if err := s.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
				taken := int64(1000 + row.keys*row.rounds)
				if row.rounds == 1 {
					taken += 5 // the refund is lost: nobody asks for less than nothing
				}
				if st := s.Stats(); b.total()+int64(st.Lost) != taken { // a hit is pushed or lost
					t.Errorf("%d hits are pushed and %d lost, of %d", b.total(), st.Lost, taken)
				}
			})
		})
	}
}

// Counters that have expired go when others come: the table does not grow with the keys
// that were ever used. The others stay, each with its count.
func TestExpiredCountersGo(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	s := newStore(t, nil, synced.Config{Interval: -1, Clock: clock.Now})
	short := newLimiterNamed(t, s, "short", aligned(10, time.Minute))
	long := newLimiterNamed(t, s, "long", aligned(100, 360*day))
	const keys, rounds = 3000, 20
	for round := range rounds {
		for i := range keys {
			take(t, short, fmt.Sprint(round, " ", i))
			if i%rounds >= round {
				take(t, long, fmt.Sprint(i))
			}
		}
		clock.Advance(10 * time.Minute)
	}
	for i := range keys {
		if got, want := left(t, long, fmt.Sprint(i)), int64(100-1-i%rounds); got != want {
			t.Fatalf("%d left of key %d, want %d", got, i, want)
		}
	}
	if st := s.Stats(); st.Keys > 2*keys+keys/2 || st.Lost != 0 {
		t.Errorf("%+v after %d times %d keys, and %d that stay", st, rounds, keys, keys)
	}
}

// An operation never evicts an entry that it works on itself: all its charges arrive.
func TestAnOperationKeepsItsOwnEntries(t *testing.T) {
	s := newStore(t, nil, synced.Config{Interval: -1, MaxKeys: 1, Log: quiet})
	var rules []core.Rule
	var hits []core.Hit
	for i := range 60 {
		name := fmt.Sprint("r", i)
		rules = append(rules, core.Rule{Name: name, Limits: []core.Limit{aligned(10, time.Hour), aligned(10, 2*time.Hour)}})
		hits = append(hits, core.Hit{Rule: name, Key: "k"})
	}
	l := core.Must(core.New(core.Config{Name: "api", Store: s, Rules: rules}))
	if _, err := l.Take(t.Context(), 4, hits...); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Lost != 0 || st.Keys != 120 {
		t.Errorf("%d hits of the same operation are lost, and %d counters stay, want 120", st.Lost, st.Keys)
	}
	if d, err := l.Take(t.Context(), 4, hits...); err != nil || d.Remaining != 2 {
		t.Errorf("%d left, %v, want 2", d.Remaining, err)
	}
}

// The fetched counters are bounded by MaxKeys.
func TestFetchedCountersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		_, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second}, aligned(10, day))
		const keys = 200
		for i := range keys {
			take(t, limiters[0], fmt.Sprint(i))
		}
		time.Sleep(1100 * time.Millisecond)
		log := new(logged)
		_, limiters = newNodes(t, b, 1, synced.Config{Interval: time.Hour, MaxKeys: 64, Log: slog.New(slog.NewTextHandler(log, nil))}, aligned(10, day))
		known := 0
		for i := range keys {
			if take(t, limiters[0], fmt.Sprint(i)); left(t, limiters[0], fmt.Sprint(i)) == 8 {
				known++
			}
		}
		if known != 64 || log.count(`level=WARN msg="not all shared counters could be fetched; `) != 1 ||
			log.count(`namespace=default fetched=64 error="more counters`) != 1 {
			t.Errorf("%d of %d fetched counters were known, want 64; logged: %s", known, keys, &log.text)
		}
	})
}

// A clock that is corrected, in either direction and by any amount, leaves a counter in the
// window that is current then.
func TestTheClockIsCorrected(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	s := newStore(t, nil, synced.Config{Interval: -1, Clock: clock.Now})
	l := newLimiter(t, s, core.Limit{Quota: 10, Window: time.Minute, Algorithm: core.FixedWindow, Aligned: true})
	for _, row := range []struct {
		by   time.Duration
		left int64 // before the next take
	}{
		{0, 10},
		{time.Minute, 10},
		{-time.Second, 9},           // not yet in the window before: the hits stay
		{-30 * time.Second, 8},      // in the window before
		{time.Hour, 10},             // far ahead
		{-time.Hour, 10},            // and back
		{30 * time.Second, 9},       // still the same window
		{-365 * 24 * time.Hour, 10}, // as long as one likes
		{2*365*24*time.Hour + 1000, 10},
	} {
		clock.Advance(row.by)
		if got := left(t, l, "k"); got != row.left {
			t.Errorf("%v later: %d left, want %d", row.by, got, row.left)
		}
		take(t, l, "k")
	}
	sliding := newLimiterNamed(t, s, "sliding", aligned(10, time.Minute))
	for range 5 {
		take(t, sliding, "k")
	}
	clock.Advance(2*time.Minute + time.Second) // to the beginning of a window
	if got := left(t, sliding, "k"); got != 10 {
		t.Errorf("two windows later: %d left, want 10", got)
	}
}

// Increment by 0, Rate and Peek only read: in a full table they evict no counter, and
// Increment by more does.
func TestReadingARateEvictsNothing(t *testing.T) {
	for _, interval := range []time.Duration{time.Hour, -1} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t, newShared(), synced.Config{Interval: interval, MaxKeys: 64, Windows: []time.Duration{time.Minute}, Log: quiet})
			l := newLimiter(t, s, aligned(1, time.Minute))
			count := func(key string, n int64) {
				if _, err := s.Increment(t.Context(), key, time.Minute, n); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 3000 {
				count(fmt.Sprint("used", i), 1)
			}
			before := s.Stats()
			if before.Keys != 64 || before.Lost != 3000-64 {
				t.Fatalf("%+v, want a full table", before)
			}
			for i := range 1000 {
				count(fmt.Sprint("read", i), 0)
				if _, err := s.Rate(t.Context(), fmt.Sprint("read", i), time.Minute, 1); err != nil || left(t, l, fmt.Sprint("read", i)) != 1 {
					t.Fatal(err)
				}
			}
			if got := s.Stats(); got != before {
				t.Errorf("interval %v: after reading %+v, before %+v", interval, got, before)
			}
		})
	}
}
