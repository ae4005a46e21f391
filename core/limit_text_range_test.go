package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// The error for a number that is too small or too large says which numbers are allowed.
func TestLimitsTextSaysWhichNumbersAreAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"10/0s":                                   `window: "0s": must be from 1ms to 366 days`,
		"10/99999999999999999999s":                `window: "99999999999999999999s": must be from 1ms to 366 days`,
		"10/m bucketed_window precision=0s":       `precision: "0s": must be from 1ms to 366 days`,
		"2 in flight lease=0s":                    `lease: "0s": must be from 1s to 366 days`,
		"2 in flight lease=99999999999999999999h": `lease: "99999999999999999999h": must be from 1s to 366 days`,
		"2 in flight lease=999ms":                 `lease: "999ms": must be from 1s to 366 days`,
		"2 in flight lease=367d":                  `lease: "367d": must be from 1s to 366 days`,
		"99999999999999999999/m":                  `quota: "99999999999999999999": must be from 0 to 2147483647`,
		"099999999999999999999/m":                 `quota: "099999999999999999999": must be from 0 to 2147483647`,
		"99999999999999999999 in flight":          `quota: "99999999999999999999": must be from 0 to 10000`,
		"-99999999999999999999/m":                 `quota: "-99999999999999999999": want a whole number`,
	} {
		if limits, err := core.ParseLimits(text); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %s", text, limits, err, want)
		}
	}
}

// A lease at the end of its range is in it.
func TestTheEndsOfTheRangeOfALeaseInText(t *testing.T) {
	for text, want := range map[string]time.Duration{"2 in flight lease=1s": time.Second, "2 in flight lease=366d": core.MaxWindow} {
		if limits, err := core.ParseLimits(text); err != nil || limits[0].Window != want {
			t.Errorf("%q: %v, %v, want a lease of %v", text, limits, err, want)
		}
	}
}
