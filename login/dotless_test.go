package login_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/login"
)

func TestNormalizeMapsADotlessIToAnI(t *testing.T) {
	for _, s := range []string{"vıctim", "VİCTİM", "VICTIM"} {
		if got := login.Normalize(s); got != "victim" {
			t.Errorf("%q becomes %q", s, got)
		}
	}
}
