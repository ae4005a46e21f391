package core_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// The error for a number that is too small or too large says which numbers are allowed.
func TestLimitsTextSaysWhichNumbersAreAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"10/0s":                             `window: "0s": must be from 1ms to 366 days`,
		"10/99999999999999999999s":          `window: "99999999999999999999s": must be from 1ms to 366 days`,
		"10/m bucketed_window precision=0s": `precision: "0s": must be from 1ms to 366 days`,
		"99999999999999999999/m":            `quota: "99999999999999999999": must be from 0 to 2147483647`,
		"099999999999999999999/m":           `quota: "099999999999999999999": must be from 0 to 2147483647`,
		"-99999999999999999999/m":           `quota: "-99999999999999999999": want a whole number`,
	} {
		if limits, err := core.ParseLimits(text); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %s", text, limits, err, want)
		}
	}
}
