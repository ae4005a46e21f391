package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func TestADecisionTellsMilliseconds(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{{Quota: 2, Window: 1500 * time.Millisecond, Algorithm: core.FixedWindow}}}}}, newClock())
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
	if err != nil || !strings.HasSuffix(d.String(), "whole again in 1.5s") {
		t.Errorf("%v, %v", d, err)
	}
}

func TestADecisionOfADryRunTellsWhyItWouldDeny(t *testing.T) {
	for err, want := range map[error]string{
		core.ErrBadRequest:   `limiter "default" would deny a bad request`,
		errors.New("broken"): `limiter "default" would deny, because it could not decide`,
	} {
		l := newLimiter(t, core.Config{DryRun: true, Log: (&lines{}).logger(), Rules: []core.Rule{{Name: "r", Key: fails(err), Limits: []core.Limit{core.PerMinute(1)}}}}, newClock())
		if d := l.Check(&request{}); !d.Allowed || d.String() != want {
			t.Errorf("%q, want %q", d.String(), want)
		}
	}
}
