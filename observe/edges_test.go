package observe_test

import (
	"context"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/observe"
)

// An observer gets the keys that it asks for, whichever of those that are joined it is.
func TestTheFirstOfTheJoinedAsksForKeys(t *testing.T) {
	var all []string
	f := observe.Join(told{name: "a", all: &all, keys: true}, told{name: "b", all: &all}).Observe("l", nil)
	if f.Decided(t.Context(), core.Observation{Key: "k"}); !f.Keys || all[0] != "a decided k" || all[1] != "b decided " {
		t.Errorf("keys: %t, told %q", f.Keys, all)
	}
}

// The first request over a limit of a dry run is a result.
func TestTheFirstRequestOfADryRun(t *testing.T) {
	counts := observe.NewCounts()
	counts.Observe("l", []core.Rule{rule("a", 9)}).Decided(context.Background(), core.Observation{Allowed: true, DryRun: true, Reason: core.ReasonOverLimit})
	for r := range counts.Read()[0].Results() {
		if r.Result == observe.DryRun && r.Count == 1 {
			return
		}
	}
	t.Error("the results have no dryRun request")
}

// What a program changes in the bounds that it was given, or in the observers that it has joined, is its own.
func TestBoundsAndObserversAreCopied(t *testing.T) {
	for name, bounds := range map[string]func() []time.Duration{"Bounds": observe.Bounds, "RequestBounds": observe.RequestBounds} {
		mine := bounds()
		first := mine[0]
		mine[0] = time.Hour
		got := bounds()[0]
		if mine[0] = first; got != first {
			t.Errorf("%s: the first is %v after it was changed, want %v", name, got, first)
		}
	}
	var all []string
	mine := []core.Observer{nil, told{name: "a", all: &all}, nil, told{name: "b", all: &all}}
	f := observe.Join(mine...).Observe("l", nil)
	if mine[0] != nil || mine[1] != (told{name: "a", all: &all}) || mine[2] != nil || mine[3] != (told{name: "b", all: &all}) {
		t.Errorf("Join has changed %v", mine)
	}
	mine[1] = nil
	if f.Reported(t.Context(), "event"); len(all) != 2 {
		t.Errorf("told %q", all)
	}
}
