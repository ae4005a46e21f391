package redisstore_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

func (f *formatted) block(d time.Duration) {
	f.t.Helper()
	if err := f.bound.(core.Blocker).Block(f.t.Context(), one("k", 0, f.limits), d); err != nil {
		f.t.Fatal(err)
	}
}

// The shortest block denies a key, also one that nobody has used.
func TestABlockLastsAMicrosecond(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), hour)
	f.block(time.Microsecond)
	if b := f.take(); b.Allowed || b.Items[0].Results[0].RetryAfter != time.Microsecond {
		t.Errorf("allowed %t, %+v", b.Allowed, b.Items[0].Results)
	}
	f.clock.Advance(time.Microsecond)
	if b := f.take(); !b.Allowed {
		t.Errorf("after it: %+v", b.Items[0].Results)
	}
}

// If a block and a limit that counts denied hits deny a request, it has to wait for the later of the two.
func TestABlockAndALimitThatCountsDeniedHits(t *testing.T) {
	server := redistest.Start(t)
	for name, c := range map[string]struct{ block, before, want time.Duration }{
		"the block ends later":                       {3 * time.Hour, 0, 3 * time.Hour},
		"the window ends later":                      {time.Minute, 0, time.Hour},
		"the window ends in a microsecond":           {3 * time.Hour, time.Hour - time.Microsecond, 2*time.Hour + time.Microsecond},
		"the block ends, and the window a bit later": {time.Hour - time.Microsecond, time.Minute, time.Hour - time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFormatted(t, server, core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow, CountDenied: true})
			f.take()
			f.block(c.block)
			f.clock.Advance(c.before)
			if b := f.take(); b.Allowed || b.Items[0].Results[0].RetryAfter != c.want {
				t.Errorf("allowed %t, %+v, want a wait of %v", b.Allowed, b.Items[0].Results, c.want)
			}
		})
	}
}

// A take of no hits writes no mark in the place of a value that cannot be read.
func TestATakeOfNothingKeepsWhatItCannotRead(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), hour, core.PerMinute(3))
	f.set([]byte("abc"))
	if err := f.bound.Take(t.Context(), one("k", 0, f.limits)); err != nil {
		t.Fatal(err)
	}
	if got := string(f.value()); got != "abc" {
		t.Errorf("the value became %q", got)
	}
}

// The value of a later version keeps the lifetime that it has, also if it has none.
func TestAValueOfALaterVersionKeepsItsLifetime(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), hour, core.PerMinute(3))
	f.set([]byte("\x03of a newer version"))
	if b := f.take(); b.Allowed {
		t.Errorf("%+v", b.Items[0].Results)
	}
	if got := f.server.MustDo("PTTL", stored(t, "k")); got != ":-1" {
		t.Errorf("the lifetime is %s, want none", got)
	}
}
