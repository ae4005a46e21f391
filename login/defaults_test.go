package login_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// The package comment and the documents state these numbers, and what follows from them.
func TestTheDefaultsAreThoseOfTheDocuments(t *testing.T) {
	for name, row := range map[string]struct{ got, want core.Limit }{
		"DefaultAttempts": {login.DefaultAttempts, core.Limit{Quota: 20, Window: time.Minute}},
		"DefaultFailures": {login.DefaultFailures, core.Limit{
			Quota: 5, Window: 15 * time.Minute, Algorithm: core.FixedWindow,
			Lockout: core.Lockout{First: 30 * time.Second, Factor: 2, Max: 60 * time.Minute, Decay: 60 * time.Minute},
		}},
		"DefaultAccountFailures": {login.DefaultAccountFailures, core.Limit{Quota: 100, Window: 60 * time.Minute, Algorithm: core.BucketedWindow, Precision: 5 * time.Minute}},
		"DefaultDeviceFailures":  {login.DefaultDeviceFailures, core.Limit{Quota: 5, Window: 60 * time.Minute, Algorithm: core.FixedWindow}},
		"DefaultTrustedFailures": {login.DefaultTrustedFailures, core.Limit{Quota: 50, Window: 60 * time.Minute, Algorithm: core.BucketedWindow, Precision: 5 * time.Minute}},
	} {
		if row.got != row.want {
			t.Errorf("%s is %+v, want %+v", name, row.got, row.want)
		}
	}
	const day = 24 * time.Hour
	if login.DefaultName != "login" || login.DefaultKnownFor != 14*day || login.DefaultCookieName != "__Host-device" || login.DefaultCookieFor != 90*day || login.MinSecret != 32 {
		t.Error("another default has changed")
	}
}
