package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// lateContext has a deadline, and ends a little later, as the runtime's timers do.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// The deadline of a request passes while it waits: its decision says so, also if its context has not
// noticed yet. If the request is denied at once, its time is not over.
func TestADeadlineThatPassesInLineIsTheErrorOfTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, patient(time.Minute, core.InFlight(1), core.PerHour(2)), nil)
		first := l.Check(&request{})
		late, cancel := context.WithTimeout(t.Context(), 51*time.Millisecond)
		defer cancel()
		ctx := lateContext{late, time.Now().Add(50 * time.Millisecond)}
		if d := l.Check(&request{ctx: ctx}); d.Allowed || !errors.Is(d.Err, context.DeadlineExceeded) || d.Waited() != 50*time.Millisecond {
			t.Errorf("%v, %v after %v", d, d.Err, d.Waited())
		}
		l.Settle(&request{}, first, core.Outcome{Status: 200})
		second := l.Check(&request{})
		l.Settle(&request{}, second, core.Outcome{Status: 200})
		ctx.deadline = time.Now().Add(time.Second)
		if d := l.Check(&request{ctx: lateContext{t.Context(), ctx.deadline}}); d.Allowed || d.Err != nil || d.Waited() != 0 {
			t.Errorf("%v, %v after %v", d, d.Err, d.Waited())
		}
	})
}
