package core

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func lockoutLimit(k Lockout) Limit {
	return Limit{Quota: 5, Window: 15 * time.Minute, Algorithm: FixedWindow, Lockout: k}
}

func TestLockoutErrorsNameTheField(t *testing.T) {
	ok := Lockout{First: 30 * time.Second}
	sliding, aligned := lockoutLimit(ok), lockoutLimit(ok)
	sliding.Algorithm = SlidingWindow
	aligned.Aligned = true
	for want, l := range map[string]Limit{
		"Lockout: waits of 30s × 2 up to 1h: only fixed_window": sliding,
		"Aligned: true: a limit with a Lockout":                 aligned,
		"Lockout.First: 0s: must be from 1ms":                   lockoutLimit(Lockout{Factor: 3}),
		"Lockout.First: -1s":                                    lockoutLimit(Lockout{First: -time.Second}),
		"Lockout.First: 1.0000005s: must be whole microseconds": lockoutLimit(Lockout{First: time.Second + 500}),
		"Lockout.First: 8784h0m1s":                              lockoutLimit(Lockout{First: MaxWindow + time.Second}),
		"Lockout.Factor: -1":                                    lockoutLimit(Lockout{First: time.Second, Factor: -1}),
		"Lockout.Factor: 1001":                                  lockoutLimit(Lockout{First: time.Second, Factor: 1001}),
		"Lockout.Max: 1s: must be from 2s to 366 days":          lockoutLimit(Lockout{First: 2 * time.Second, Max: time.Second}),
		"Lockout.Decay: 500µs: must be from 1ms":                lockoutLimit(Lockout{First: time.Second, Decay: 500 * time.Microsecond}),
		"Lockout.Decay: 1.0000005s: must be whole microseconds": lockoutLimit(Lockout{First: time.Second, Decay: time.Second + 500}),
		"Lockout.Max: -1s":                                      lockoutLimit(Lockout{First: time.Second, Max: -time.Second}),
	} {
		if err := l.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, k := range []Lockout{ok, {First: 2 * time.Hour}, {First: MinWindow, Factor: MaxLockoutFactor, Max: MaxWindow, Decay: MinWindow}} {
		if err := lockoutLimit(k).Validate(); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
	}
}

func TestWorstCaseAndLifetimeOfALockout(t *testing.T) {
	for want, k := range map[int64]Lockout{
		// Waits of 30, 60, 120, 240 and 480 s: the quota five times in 15 minutes, and once before.
		5 * 6:  {First: 30 * time.Second},
		5 * 31: {First: 30 * time.Second, Factor: 1},
		5 * 2:  {First: time.Hour},
	} {
		l := lockoutLimit(k)
		if got := l.Lifetime(); got < k.First+k.filled().Decay {
			t.Errorf("%v: state for %v", l, got)
		}
		if got := l.WorstCase(); got != want {
			t.Errorf("%v: at worst %d, want %d", l, got, want)
		}
	}
}
