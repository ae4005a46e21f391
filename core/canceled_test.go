package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A client that hangs up is no failure of the store: whoever opens and resets requests
// would else raise the alarm of who runs the limiter.
func TestAClientThatHangsUpIsNoFailureOfTheStore(t *testing.T) {
	reason := errors.New("the server shuts down")
	for name, c := range map[string]struct {
		context func(context.Context) (context.Context, func())
		err     error
		want    core.Reason
	}{
		"canceled": {func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) }, context.Canceled, core.ReasonCanceled},
		"canceled for a reason": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(reason) }
		}, reason, core.ReasonCanceled},
		"canceled while the store fails": {func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) }, errors.New("down"), core.ReasonFailed},
		"out of time": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, 0)
			return ctx, cancel
		}, context.DeadlineExceeded, core.ReasonFailed},
		"canceled by the store": {func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }, context.Canceled, core.ReasonFailed},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := c.context(t.Context())
			defer cancel()
			var log lines
			var decided []core.Reason
			stored := 0
			hangsUp := &around{core.Must(core.NewMemory(core.MemoryConfig{})), func(context.Context, core.Counters, *core.Batch) error {
				cancel()
				return c.err
			}}
			l := core.Must(core.New(core.Config{
				Name: "api", Store: hangsUp, Log: log.logger(),
				Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(5)}}},
				Observer: observeFunc(func(string, []core.Rule) core.ObserverFuncs {
					return core.ObserverFuncs{
						Decided: func(_ context.Context, o core.Observation) { decided = append(decided, o.Reason) },
						Stored:  func(context.Context, string, time.Duration, error) { stored++ },
					}
				}),
			}))
			d := l.Check(&request{ctx: ctx})
			if d.Allowed || d.Reason != c.want || !errors.Is(d.Err, c.err) {
				t.Errorf("%v: %v, %v", d, d.Reason, d.Err)
			}
			if len(decided) != 1 || decided[0] != c.want {
				t.Errorf("the observer has seen %v", decided)
			}
			failed := 0
			if c.want == core.ReasonFailed {
				failed = 1
			}
			if s := l.Stats(); s.Failed != uint64(failed) || s.Canceled != uint64(1-failed) {
				t.Errorf("%+v", s)
			}
			if got := log.take(); stored != failed || len(got) != failed {
				t.Errorf("%d operations of the store observed, logged %q", stored, got)
			}
		})
	}
}
