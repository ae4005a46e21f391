package swapstore_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// A block does not replace the value of a newer version of this module.
func TestABlockKeepsTheValueOfANewerVersion(t *testing.T) {
	values := newMapSwapper()
	store := core.Must(swapstore.New(values, swapstore.Config{Clock: newClock().Now}))
	l := newLimiter(t, core.Config{Name: "l", Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(5)}}}})
	k := core.Hit{Rule: "r", Key: "k"}
	if !take(t, l, "k") {
		t.Fatal("denied")
	}
	for name, v := range values.values {
		v.Value = []byte("\x07new")
		values.values[name] = v
	}
	for _, d := range []time.Duration{time.Hour, 0} {
		if err := l.Block(t.Context(), d, k); err == nil {
			t.Errorf("a block of %v replaces the value", d)
		}
	}
	for name, v := range values.values {
		if string(v.Value) != "\x07new" {
			t.Errorf("%s is now %q", name, v.Value)
		}
	}
}
