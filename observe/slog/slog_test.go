package slogobserve_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	slogobserve "github.com/floodgate-go/floodgate/observe/slog"
)

// log returns a log without times, and the text that it has got.
func log() (*slog.Logger, *strings.Builder) {
	var text strings.Builder
	return slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), &text
}

func TestLines(t *testing.T) {
	for every, pause := range map[time.Duration]time.Duration{0: time.Second, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) { testLines(t, every, pause) })
	}
}

func testLines(t *testing.T, every, pause time.Duration) {
	log, text := log()
	limits := []core.Limit{{Name: "ip-1s", Quota: 1, Window: time.Second}, {Name: "ip-1h", Quota: 1, Window: time.Hour}}
	f := core.Must(slogobserve.New(slogobserve.Config{Log: log, Every: every})).Observe("api", []core.Rule{{Name: "ip", Limits: limits}})
	all := []struct {
		d           core.Decision
		rule, limit int
	}{
		{core.Decision{Allowed: true}, 0, 0},
		{core.Decision{Reason: core.ReasonSkipped, Allowed: true}, -1, 0},
		{core.Decision{Reason: core.ReasonOverLimit, RetryAfter: 12 * time.Second}, 0, 1},
		{core.Decision{Reason: core.ReasonOverLimit, RetryAfter: core.Never, Degraded: true}, 0, 0},
		{core.Decision{Reason: core.ReasonOverLimit, DryRun: true, Allowed: true, RetryAfter: 1}, 0, 0},
		{core.Decision{Reason: core.ReasonBadRequest, DryRun: true, Err: errors.New("two names")}, 0, 1},
		{core.Decision{Reason: core.ReasonOverLimit}, -1, 0},
		{core.Decision{Reason: core.ReasonFailed, Err: errors.New("down")}, -1, 0},
		{core.Decision{Reason: core.ReasonCanceled, Err: context.Canceled}, -1, 0},
	}
	for range 3 {
		for _, row := range all {
			f.Decided(t.Context(), row.d, row.rule, row.limit)
		}
	}
	want := `level=WARN msg="floodgate: denied" limiter=api rule=ip limit=ip-1h retry_after=12s
level=WARN msg="floodgate: denied" limiter=api rule=ip limit=ip-1s retry_after=never degraded=true
level=INFO msg="floodgate: dry run" limiter=api rule=ip limit=ip-1s retry_after=1ns
level=WARN msg="floodgate: bad request" limiter=api error="two names"
level=WARN msg="floodgate: denied" limiter=api
level=ERROR msg="floodgate: failed" limiter=api error=down
`
	if got := text.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	text.Reset()
	time.Sleep(pause - 1)
	f.Decided(t.Context(), all[2].d, 0, 1)
	time.Sleep(time.Nanosecond)
	f.Decided(t.Context(), all[2].d, 0, 1)
	f.Decided(t.Context(), all[2].d, 0, 1)
	if got := text.String(); got != "level=WARN msg=\"floodgate: denied\" limiter=api rule=ip limit=ip-1h retry_after=12s left_out=3\n" {
		t.Errorf("later: %q", got)
	}
	text.Reset()
	time.Sleep(pause)
	f.Decided(t.Context(), all[2].d, 0, 1)
	if got := text.String(); !strings.HasSuffix(got, " left_out=1\n") {
		t.Errorf("still later: %q", got)
	}
}

// Of many requests at the same time, one writes the line.
func TestOneOfManyWritesTheLine(t *testing.T) {
	log, text := log()
	observer := core.Must(slogobserve.New(slogobserve.Config{Log: log, Every: time.Hour}))
	for range 5000 {
		text.Reset()
		f := observer.Observe("api", nil)
		var ready, all sync.WaitGroup
		ready.Add(8)
		for range 8 {
			all.Go(func() {
				ready.Done()
				ready.Wait()
				f.Decided(t.Context(), core.Decision{Reason: core.ReasonFailed}, -1, 0)
			})
		}
		if all.Wait(); strings.Count(text.String(), "\n") != 1 {
			t.Fatal(text)
		}
	}
}

// A line has the key only if Keys is set, and is one line whatever the key is.
func TestKeysOfLines(t *testing.T) {
	for _, keys := range []bool{false, true} {
		log, text := log()
		l := core.Must(core.New(core.Config{
			Rules:    []core.Rule{{Limits: []core.Limit{core.PerHour(0)}}},
			Observer: core.Must(slogobserve.New(slogobserve.Config{Log: log, Keys: keys, Every: time.Hour})),
		}))
		for range 3 {
			l.Allow(t.Context(), core.Hit{Rule: "default", Key: "eve\nlevel=ERROR"})
		}
		f := core.Must(slogobserve.New(slogobserve.Config{Log: log, Keys: keys})).Observe("l", []core.Rule{{Limits: []core.Limit{core.PerHour(0)}}})
		if got := text.String(); strings.Count(got, "\n") != 1 || strings.Contains(got, `key="eve\nlevel=ERROR"`) != keys {
			t.Errorf("Keys: %t: %q", keys, got)
		}
		text.Reset()
		f.Decided(t.Context(), core.Decision{Reason: core.ReasonBadRequest}, 0, 0) // the limit of the key has allowed it
		if got := text.String(); got != "level=WARN msg=\"floodgate: bad request\" limiter=l\n" {
			t.Errorf("Keys: %t: %q", keys, got)
		}
	}
}

// ctxKey is the key of a value in the context of a request.
type ctxKey struct{}

// withCtx adds the value of the context to each line, as a handler does for the id of a trace.
type withCtx struct{ slog.Handler }

func (h withCtx) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(slog.Any("trace", ctx.Value(ctxKey{})))
	return h.Handler.Handle(ctx, r)
}

// Without a Log, the lines go to the default log of the moment, with the context of the request.
func TestLinesGoToTheDefaultLog(t *testing.T) {
	f := core.Must(slogobserve.New(slogobserve.Config{})).Observe("api", nil)
	before := slog.Default()
	defer slog.SetDefault(before)
	log, text := log()
	slog.SetDefault(slog.New(withCtx{log.Handler()}))
	f.Decided(context.WithValue(t.Context(), ctxKey{}, 7), core.Decision{Reason: core.ReasonFailed}, -1, 0)
	if got := text.String(); got != "level=ERROR msg=\"floodgate: failed\" limiter=api trace=7\n" {
		t.Errorf("%q", got)
	}
}

func TestConfig(t *testing.T) {
	for _, every := range []time.Duration{-1, 1, time.Millisecond - 1, 24*time.Hour + 1, math.MaxInt64} {
		if _, err := slogobserve.New(slogobserve.Config{Every: every}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), fmt.Sprint("Every: ", every)) {
			t.Errorf("Every %v: %v", every, err)
		}
	}
	for _, every := range []time.Duration{time.Millisecond, 24 * time.Hour} {
		if _, err := slogobserve.New(slogobserve.Config{Every: every}); err != nil {
			t.Error(err)
		}
	}
}

func ExampleNew() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "retry_after" { // they are others each time
			return slog.Attr{}
		}
		return a
	}}))
	observer, err := slogobserve.New(slogobserve.Config{Log: log})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := core.Must(core.New(core.Config{
		Name:     "jobs",
		Rules:    []core.Rule{{Name: "tenant", Limits: []core.Limit{core.PerHour(2)}}},
		Observer: observer,
	}))
	for range 100 {
		limiter.Allow(context.Background(), core.Hit{Rule: "tenant", Key: "42"})
	}
	// Output: level=WARN msg="floodgate: denied" limiter=jobs rule=tenant limit=tenant
}
