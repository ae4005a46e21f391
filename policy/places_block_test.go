package policy

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// plainBound has the methods of a core.Bound and no others.
type plainBound struct{ core.Bound }

// forgetful counts how often it forgets all keys.
type forgetful struct {
	core.Bound
	times *int
}

func (f forgetful) ResetAll(context.Context) error { *f.times++; return nil }

// Both stores are told to block and to forget, and one that cannot is an error.
func TestBothPlacesBlockAndForget(t *testing.T) {
	p := twoPlaces(t, nil)
	rules := []core.StoreRule{{Name: "rr", Limits: []core.Limit{core.PerMinute(5)}}, {Name: "r", Limits: []core.Limit{core.PerMinute(5)}}}
	bound, err := p.Bind("l", rules)
	if err != nil {
		t.Fatal(err)
	}
	b := bound.(*placesBound)
	local, shared, times := b.local, b.shared, 0
	b.local, b.shared = forgetful{local, &times}, forgetful{shared, &times}
	if err := b.ResetAll(t.Context()); err != nil || times != 2 {
		t.Errorf("ResetAll: %v, of %d stores, want 2", err, times)
	}
	for name, bounds := range map[string][2]core.Bound{"local": {plainBound{local}, shared}, "shared": {local, plainBound{shared}}} {
		b.local, b.shared = bounds[0], bounds[1]
		if err := b.Block(t.Context(), one(false), time.Hour); !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("the %s store cannot block: %v", name, err)
		}
		if err := b.Grant(t.Context(), one(false)); !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("the %s store cannot grant: %v", name, err)
		}
		if err := b.ResetAll(t.Context()); !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("the %s store cannot forget: %v", name, err)
		}
	}
}
