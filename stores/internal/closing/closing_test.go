package closing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/closing"
)

// counting counts the calls that reach it. It rejects rules.
type counting struct{ calls *int }

var errInner = errors.New("the store's")

func (c counting) Do(context.Context, *core.Batch) error { *c.calls++; return errInner }

func (c counting) Reopen(rules []core.StoreRule) (core.Counters, error) {
	if *c.calls++; rules != nil {
		return nil, errInner
	}
	return c, nil
}

// locating also says which server has a key.
type locating struct{ counting }

func (locating) ServerOf(rule int, key []byte) string { return fmt.Sprint(rule, string(key)) }

// The Counters of a closed gate, and all that were made of them by Reopen, return ErrClosed and ask nobody.
func TestCountersEndWithTheirGate(t *testing.T) {
	calls := 0
	g := closing.New("somestore")
	first := g.Open(counting{&calls})
	second, err := first.Reopen(nil)
	if _, rejected := first.Reopen([]core.StoreRule{}); err != nil || !errors.Is(rejected, errInner) {
		t.Fatal(err, rejected)
	}
	type locator interface{ ServerOf(int, []byte) string }
	if _, ok := first.(locator); ok || g.Open(locating{}).(locator).ServerOf(1, []byte("k")) != "1k" {
		t.Error("the Counters find servers that the store's do not, or others")
	}
	use := func() (errs []error) {
		for _, c := range []core.Counters{first, second} {
			_, err := c.Reopen(nil)
			errs = append(errs, err, c.Do(t.Context(), nil))
		}
		return errs
	}
	if errs := use(); !slices.Equal(errs, []error{nil, errInner, nil, errInner}) || calls != 6 {
		t.Errorf("before Close: %v; %d of 6 calls have reached the store", errs, calls)
	}
	g.Close()
	g.Close()
	for _, err := range use() {
		if !errors.Is(err, core.ErrClosed) || !strings.HasPrefix(err.Error(), "somestore: ") {
			t.Errorf("after Close: %v", err)
		}
	}
	if calls != 6 {
		t.Errorf("%d calls have reached the store after Close", calls-6)
	}
}
