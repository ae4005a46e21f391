package resilient

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An open circuit lets one operation try again after Retry and at most a quarter
// of it more: not all circuits at the same moment.
func TestWhenAnOpenCircuitTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Config{Failures: 1, Retry: time.Second, Log: slog.New(slog.DiscardHandler)}
		var all []*circuit
		for range 100 {
			k := newCircuit("", c)
			ticket, err := k.allow()
			if err != nil {
				t.Fatal(err)
			}
			ticket.done(errors.New("down"), true)
			all = append(all, k)
		}
		trying := func() (n int) {
			for _, k := range all {
				if ticket, err := k.allow(); err == nil {
					n++
					ticket.done(errors.New("still down"), false)
				}
			}
			return n
		}
		time.Sleep(c.Retry - time.Nanosecond)
		if n := trying(); n != 0 {
			t.Errorf("%d of 100 try again before Retry", n)
		}
		time.Sleep(c.Retry / 8)
		if n := trying(); n == 0 || n == 100 {
			t.Errorf("%d of 100 try again after an eighth more, want about a half", n)
		}
		time.Sleep(c.Retry/8 + time.Microsecond)
		if n := trying(); n != 100 {
			t.Errorf("%d of 100 try again after a quarter more", n)
		}
	})
}

// A failure that follows a success is logged if the last one that was is a minute
// ago.
func TestWhenAFailureIsLoggedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		k := newCircuit("", &Config{Failures: 10, Retry: time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for _, step := range []struct {
			after time.Duration
			lines int
		}{{0, 1}, {logAgain - 1, 1}, {1, 2}, {logAgain, 3}, {logAgain - 1, 3}} {
			time.Sleep(step.after)
			for _, err := range []error{errors.New("down"), nil} {
				ticket, refused := k.allow()
				if refused != nil {
					t.Fatal(refused)
				}
				ticket.done(err, err != nil)
			}
			if n := strings.Count(log.String(), "do not answer"); n != step.lines {
				t.Errorf("%v later, %d failures are logged, want %d", step.after, n, step.lines)
			}
		}
	})
}

// The longest Retry stays what it is: lengthened, it would be negative, and an open circuit
// would try again after a minute.
func TestTheLongestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			k := newCircuit("", &Config{Failures: 1, Retry: math.MaxInt64, Log: slog.New(slog.DiscardHandler)})
			ticket, err := k.allow()
			if err != nil {
				t.Fatal(err)
			}
			ticket.done(errors.New("down"), true)
			time.Sleep(24 * time.Hour)
			if _, err := k.allow(); err == nil {
				t.Fatal("an open circuit tries again after a day")
			}
		}
	})
}
