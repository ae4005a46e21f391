package hooktest

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Frozen is a clock that stands still, for windows that do not end meanwhile.
func Frozen() time.Time { return time.Unix(1_764_000_000, 0) }

// Limiter makes a limiter whose clock stands still, unless it has a store.
func Limiter(t testing.TB, c core.Config) *core.Limiter {
	t.Helper()
	if c.Store == nil {
		c.Store = core.Must(core.NewMemory(core.MemoryConfig{Clock: Frozen}))
	}
	return New(t, c)
}

// ByKey makes a limiter with one rule of n requests a minute.
func ByKey(t testing.TB, key core.KeyFunc, n int64) *core.Limiter {
	t.Helper()
	return Limiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: key, Limits: []core.Limit{core.PerMinute(n)}}}})
}

// Watched is a limiter of 100 requests that tells the outcome of each, and gives its hit back.
type Watched struct {
	*core.Limiter
	Outcomes chan core.Outcome
}

// Watch makes a Watched.
func Watch(t testing.TB) *Watched {
	t.Helper()
	w := &Watched{Outcomes: make(chan core.Outcome, 100)}
	w.Limiter = Limiter(t, core.Config{Rules: []core.Rule{{
		Name: "r", Limits: []core.Limit{core.PerMinute(100)},
		Key: func(dst []byte, _ core.Request) ([]byte, error) { return dst, nil },
		Counts: func(_ core.Request, o core.Outcome) bool {
			w.Outcomes <- o
			return false
		},
	}}})
	return w
}

// Next returns the next outcome.
func (w *Watched) Next(t testing.TB) core.Outcome {
	t.Helper()
	select {
	case o := <-w.Outcomes:
		return o
	case <-time.After(20 * time.Second):
		t.Fatal("the limiter was not told the outcome")
		return core.Outcome{}
	}
}
