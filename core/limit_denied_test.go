package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func TestALimitThatCountsDeniedHits(t *testing.T) {
	limits, err := core.ParseLimits("5/m count-denied, 7/h token_bucket burst=9 count-denied")
	if err != nil || !limits[0].CountDenied || !limits[1].CountDenied {
		t.Fatalf("%+v, %v", limits, err)
	}
	if got, want := limits[1].String(), "7 per 1h (token_bucket, burst 9, denied hits count)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := core.ParseLimits("5/m count-denied count-denied"); !errors.Is(err, core.ErrConfig) {
		t.Errorf("twice: %v", err)
	}
	locks := core.Limit{Quota: 3, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute}, CountDenied: true}
	if err := locks.Validate(); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "CountDenied: true") {
		t.Errorf("with a lockout: %v", err)
	}
	slots := core.InFlight(3)
	slots.CountDenied = true
	if err := slots.Validate(); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "CountDenied: true: what is denied holds no lease") {
		t.Errorf("of limits in flight: %v", err)
	}
}
