package redisstore_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

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
