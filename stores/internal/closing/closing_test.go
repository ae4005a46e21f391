package closing_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/closing"
)

// counting counts the calls that reach it.
type counting struct{ calls *int }

func (c counting) Do(context.Context, *core.Batch) error { *c.calls++; return nil }

func (c counting) Reopen([]core.StoreRule) (core.Counters, error) { *c.calls++; return c, nil }

// The Counters of a closed gate, and all that were made of them by Reopen,
// return ErrClosed and ask nobody.
func TestCountersEndWithTheirGate(t *testing.T) {
	calls := 0
	g := closing.New("somestore")
	first := g.Open(counting{&calls})
	second, err := first.Reopen(nil)
	if err != nil {
		t.Fatal(err)
	}
	use := func() (errs []error) {
		for _, c := range []core.Counters{first, second} {
			_, err := c.Reopen(nil)
			errs = append(errs, c.Do(t.Context(), nil), err)
		}
		return errs
	}
	for _, err := range use() {
		if err != nil {
			t.Errorf("before Close: %v", err)
		}
	}
	if calls != 5 {
		t.Errorf("%d of 5 calls have reached the store", calls)
	}
	g.Close()
	g.Close()
	for _, err := range use() {
		if !errors.Is(err, core.ErrClosed) || !strings.HasPrefix(err.Error(), "somestore: ") {
			t.Errorf("after Close: %v", err)
		}
	}
	if calls != 5 {
		t.Errorf("%d calls have reached the store after Close", calls-5)
	}
}
