package redisstore_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

func (f *formatted) block(d time.Duration) {
	f.t.Helper()
	if err := block(f.t.Context(), f.bound, one("k", 0, f.limits), d); err != nil {
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

// A take of no hits writes no mark in the place of a value that cannot be read.
func TestATakeOfNothingKeepsWhatItCannotRead(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), hour, core.PerMinute(3))
	f.set([]byte("abc"))
	if err := storetest.Do(t.Context(), f.bound, core.OpTake, one("k", 0, f.limits)); err != nil {
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
