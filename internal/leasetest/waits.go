package leasetest

import (
	"context"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/internal/processtest"
)

// waiting is two programs that share a server, and whose requests wait.
type waiting struct {
	*testing.T
	one, other *core.Limiter
}

// Waits tests requests that wait for what a shared store counts. newStore returns a store of one server, each
// time as another process would.
func Waits(t *testing.T, newStore func(t *testing.T) core.Store) {
	for name, row := range map[string]struct {
		limit core.Limit
		test  func(w *waiting)
	}{
		"their-time-comes":  {core.Limit{Quota: 1, Window: 300 * time.Millisecond, Algorithm: core.FixedWindow}, (*waiting).theirTimeComes},
		"released-here":     {core.InFlight(1), func(w *waiting) { w.released(w.one) }},
		"released-there":    {core.InFlight(1), func(w *waiting) { w.released(w.other) }},
		"clients-that-left": {core.InFlight(1), (*waiting).clientsThatLeft},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limiter := func() *core.Limiter {
				return core.Must(core.New(core.Config{
					Name: name, Store: newStore(t), MaxWait: 30 * time.Second,
					Rules: []core.Rule{{Name: "user", Key: userAnn, Limits: []core.Limit{row.limit, core.PerHour(1000)}}},
				}))
			}
			row.test(&waiting{t, limiter(), limiter()})
		})
	}
}

func userAnn(dst []byte, _ core.Request) ([]byte, error) { return append(dst, hit.Key...), nil }

// check decides on a request, and returns what ends it.
func check(ctx context.Context, l *core.Limiter) (d core.Decision, end func()) {
	r := floodgatetest.NewRequest("GET", "/", floodgatetest.Context(ctx))
	d = l.Check(r)
	return d, func() { l.Settle(r, d, core.Outcome{Status: 200}) }
}

func (w *waiting) theirTimeComes() {
	first, _ := check(w.Context(), w.one)
	second, _ := check(w.Context(), w.one)
	if !first.Allowed || !second.Allowed || second.Waited() <= 0 {
		w.Errorf("%v, then %v after %v", first, second, second.Waited())
	}
}

// A slot is released in the same process, which calls the first in line, or in another one, which
// is asked once a second.
func (w *waiting) released(by *core.Limiter) {
	first, end := check(w.Context(), by)
	if !first.Allowed {
		w.Fatal(first)
	}
	allowed := make(chan core.Decision)
	go func() {
		d, end := check(w.Context(), w.one)
		end()
		allowed <- d
	}()
	processtest.WaitFor(w, "the request to wait", func() bool { return w.one.Stats().Waiting == 1 })
	end()
	if d := <-allowed; !d.Allowed || d.Waited() <= 0 {
		w.Errorf("%v after %v", d, d.Waited())
	}
	w.left(1, 998)
}

// A client that goes away has no slot, and is charged nothing.
func (w *waiting) clientsThatLeft() {
	first, end := check(w.Context(), w.one)
	if !first.Allowed {
		w.Fatal(first)
	}
	ctx, leave := context.WithCancel(w.Context())
	left := make(chan core.Decision)
	for range 3 {
		go func() {
			d, end := check(ctx, w.one)
			end()
			left <- d
		}()
	}
	processtest.WaitFor(w, "the requests to wait", func() bool { return w.one.Stats().Waiting == 3 })
	leave()
	for range 3 {
		if d := <-left; d.Allowed {
			w.Errorf("%v", d)
		}
	}
	if n := w.one.Stats().Waiting; n != 0 {
		w.Errorf("%d wait", n)
	}
	end()
	w.left(1, 999)
}

// left checks what is left of the slots and of the rate, as the other process sees it.
func (w *waiting) left(slots, hits int64) {
	w.Helper()
	processtest.WaitFor(w, "the slots and hits", func() bool {
		d, err := w.other.Peek(w.Context(), 0, hit)
		var got []int64
		for s := range d.Limits() {
			got = append(got, s.Remaining)
		}
		return err == nil && len(got) == 2 && got[0] == slots && got[1] == hits
	})
}
