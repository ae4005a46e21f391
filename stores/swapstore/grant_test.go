package swapstore_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// The error of a Grant tells whether the Grant is certain to have granted nothing: the caller
// grants again then.
func TestTheErrorTellsThatNothingWasGranted(t *testing.T) {
	refused := fmt.Errorf("refused: %w", core.ErrNotCharged)
	for _, row := range []struct {
		name    string
		n       int // which operation fails; each key has a Load and a Swap
		lasting bool
		err     error
		want    bool
		left    [2]int64
	}{
		{"the first key cannot be loaded", 1, false, errFault, true, [2]int64{0, 0}},
		{"the first key's Swap is refused", 2, false, refused, true, [2]int64{0, 0}},
		{"the first key's Swap fails", 2, false, errFault, false, [2]int64{0, 2}},
		{"the second key cannot be loaded", 3, true, errFault, false, [2]int64{2, 0}},
		{"the second key's Swap is refused", 4, true, refused, false, [2]int64{2, 0}},
	} {
		s := &ailing{mapSwapper: newMapSwapper(), n: -1, err: row.err}
		b, err := core.Must(swapstore.New(s, swapstore.Config{})).Open("l", stepRules)
		if err != nil {
			t.Fatal(err)
		}
		if err := storetest.Do(t.Context(), b, core.OpTake, batchOf(3, 3)); err != nil {
			t.Fatal(err)
		}
		s.n, s.lasting = row.n, row.lasting
		err = storetest.Do(t.Context(), b, core.OpGrant, batchOf(2, 2))
		if err == nil || errors.Is(err, core.ErrNotCharged) != row.want {
			t.Errorf("%s: the error %v says that nothing was granted: %v, want %v", row.name, err, errors.Is(err, core.ErrNotCharged), row.want)
		}
		s.n, s.lasting = -1, false
		look := batchOf(0, 0)
		if err := storetest.Do(t.Context(), b, core.OpTake, look); err != nil {
			t.Fatal(err)
		}
		if got := [2]int64{look.Items[0].Results[0].Remaining, look.Items[1].Results[0].Remaining}; got != row.left {
			t.Errorf("%s: %d left, want %d", row.name, got, row.left)
		}
	}
}

// A grant replaces no value that it cannot read, and none of a newer version of this module.
func TestAGrantKeepsWhatItCannotRead(t *testing.T) {
	name := core.StoreRule{Name: "a"}.StoredKey("l", []byte("k"))
	for value, fails := range map[string]bool{"abc": false, "\x07new": true} {
		for _, deny := range []bool{false, true} {
			s := newMapSwapper()
			b, err := core.Must(swapstore.New(s, swapstore.Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})).Open("l", denying(stepRules, deny))
			if err != nil {
				t.Fatal(err)
			}
			s.values[name] = swapstore.Value{Value: []byte(value), Version: 0}
			if err := storetest.Do(t.Context(), b, core.OpGrant, batchOf(2)); (err != nil) != fails {
				t.Errorf("%q: %v", value, err)
			}
			if got := s.values[name].Value; string(got) != value {
				t.Errorf("%q is now %q", value, got)
			}
		}
	}
}
