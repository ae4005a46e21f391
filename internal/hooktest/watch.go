package hooktest

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Watched is a limiter that allows 100 requests at a moment that never ends. It tells the
// outcome of each, and gives its hit back.
type Watched struct {
	*core.Limiter
	Outcomes chan core.Outcome
}

// Watch makes a Watched.
func Watch() *Watched {
	w := &Watched{Outcomes: make(chan core.Outcome, 100)}
	w.Limiter = core.Must(core.New(core.Config{
		Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return time.Unix(1_764_000_000, 0) }})),
		Rules: []core.Rule{{
			Name: "r", Limits: []core.Limit{core.PerMinute(100)},
			Key: func(dst []byte, _ core.Request) ([]byte, error) { return dst, nil },
			Counts: func(_ core.Request, o core.Outcome) bool {
				w.Outcomes <- o
				return false
			},
		}},
	}))
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
