package closing_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/closing"
)

// counting counts the calls that reach it.
type counting struct{ calls *int }

func (c counting) call() error { *c.calls++; return nil }

func (c counting) Take(context.Context, *core.Batch) error   { return c.call() }
func (c counting) Refund(context.Context, *core.Batch) error { return c.call() }
func (c counting) Reset(context.Context, *core.Batch) error  { return c.call() }
func (c counting) Charge(context.Context, *core.Batch) error { return c.call() }

func (c counting) Block(context.Context, *core.Batch, time.Duration) error { return c.call() }
func (c counting) Grant(context.Context, *core.Batch) error                { return c.call() }
func (c counting) ResetAll(context.Context) error                          { return c.call() }

func (c counting) Rebind([]core.StoreRule) (core.Bound, error) { return c, c.call() }

type located struct{ counting }

func (located) ServerOf(rule int, key []byte) string { return "server of " + string(key) }

// The bound of a closed gate, and every bound that was made of it by Rebind,
// returns ErrClosed and asks nobody.
func TestABoundEndsWithItsGate(t *testing.T) {
	calls := 0
	g := closing.New("somestore")
	first := g.Bind(located{counting{&calls}})
	second, err := first.Rebind(nil)
	if err != nil {
		t.Fatal(err)
	}
	use := func(b core.Bound) []error {
		_, err := b.Rebind(nil)
		return []error{b.Take(t.Context(), nil), b.Refund(t.Context(), nil), b.Reset(t.Context(), nil), b.Charge(t.Context(), nil), b.(core.Blocker).Block(t.Context(), nil, 0), b.(core.ResetterOfAll).ResetAll(t.Context()), b.(core.Granter).Grant(t.Context(), nil), err}
	}
	for _, err := range append(use(first), use(second)...) {
		if err != nil {
			t.Errorf("before Close: %v", err)
		}
	}
	if calls != 17 {
		t.Errorf("%d of 17 calls have reached the store", calls)
	}
	g.Close()
	g.Close()
	for _, err := range append(use(first), use(second)...) {
		if !errors.Is(err, core.ErrClosed) || !strings.HasPrefix(err.Error(), "somestore: ") {
			t.Errorf("after Close: %v", err)
		}
	}
	if calls != 17 {
		t.Errorf("%d calls have reached the store after Close", calls-17)
	}
}

func TestABoundTellsTheServerIfItsStoreDoes(t *testing.T) {
	server := func(b core.Bound) string {
		return b.(interface{ ServerOf(int, []byte) string }).ServerOf(0, []byte("k"))
	}
	calls := 0
	if got := server(closing.New("s").Bind(located{counting{&calls}})); got != "server of k" {
		t.Errorf("%q", got)
	}
	if got := server(closing.New("s").Bind(counting{&calls})); got != "" {
		t.Errorf("%q, of a store that does not tell", got)
	}
}

// divided is a store whose limits can be asked apart.
type divided struct {
	counting
	err  error
	none bool
}

func (d divided) Beside([]core.StoreRule) (core.Bound, error) {
	if d.none {
		return nil, d.err
	}
	return located{d.counting}, d.err
}

// A bound that stands beside another one ends with its gate too, and there is none
// if the store makes none.
func TestABoundBesideAnotherEndsWithItsGate(t *testing.T) {
	calls, failed := 0, errors.New("failed")
	beside := func(g *closing.Gate, b core.Bound) (core.Bound, error) {
		return g.Bind(b).(interface {
			Beside([]core.StoreRule) (core.Bound, error)
		}).Beside(nil)
	}
	g := closing.New("s")
	for name, c := range map[string]struct {
		inner core.Bound
		want  error
	}{
		"cannot be divided": {counting{&calls}, nil}, "makes none": {divided{none: true}, nil}, "fails": {divided{counting: counting{&calls}, err: failed}, failed},
	} {
		if b, err := beside(g, c.inner); b != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
	b, err := beside(g, divided{counting: counting{&calls}})
	if err != nil || b == nil || b.Take(t.Context(), nil) != nil || calls != 1 {
		t.Fatalf("%v, %v, %d calls", b, err, calls)
	}
	g.Close()
	if err := b.Take(t.Context(), nil); !errors.Is(err, core.ErrClosed) || calls != 1 {
		t.Errorf("after Close: %v, %d calls", err, calls)
	}
	if b, err := beside(g, divided{counting: counting{&calls}}); b != nil || !errors.Is(err, core.ErrClosed) {
		t.Errorf("after Close: %v, %v", b, err)
	}
}
