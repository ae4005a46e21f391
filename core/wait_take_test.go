package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A Wait logs that the store has failed, and nothing else.
func TestAWaitLogsThatTheStoreHasFailed(t *testing.T) {
	var log bytes.Buffer
	s := newAsked()
	l := core.Must(core.New(core.Config{Name: "api", Store: s, Log: slog.New(slog.NewTextHandler(&log, nil)), Rules: []core.Rule{
		{Name: "r", Limits: []core.Limit{core.PerHour(5)}},
	}}))
	hit := core.Hit{Rule: "r", Key: "k"}
	if _, err := l.Wait(t.Context(), 1, hit); err != nil || log.Len() > 0 {
		t.Errorf("error %v, and the log says %s", err, &log)
	}
	gone := errors.New("gone")
	s.fail = func(context.Context) error { return gone }
	if _, err := l.Wait(t.Context(), 1, hit); !errors.Is(err, gone) || !bytes.Contains(log.Bytes(), []byte("operation=wait")) {
		t.Errorf("error %v, and the log says %q", err, &log)
	}
}

// As golang.org/x/time/rate does: a worker whose context has ended gets nothing, also if a hit is free.
func TestAWaitWhoseContextHasEndedIsChargedNothing(t *testing.T) {
	l := newLimiter(t, patient(time.Minute, core.PerSecond(1)), nil)
	hit := core.Hit{Rule: "r", Key: "k"}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	for ctx, text := range map[context.Context]string{
		canceled: `limiter "default", rule "r": context canceled`,
		late:     `limiter "default", rule "r": floodgate: the wait is too long: context deadline exceeded`,
	} {
		d, err := l.Wait(ctx, 1, hit)
		if d.Allowed || d.Waited() != 0 || !errors.Is(err, ctx.Err()) || errors.Is(err, core.ErrWaitTooLong) != (ctx == late) || err.Error() != text {
			t.Errorf("%v, %v", d, err)
		}
	}
	if d, err := l.Wait(t.Context(), 1, hit); err != nil || d.Remaining != 0 {
		t.Errorf("%v, %v", d, err)
	}
	if n := l.Stats().Waiting; n != 0 {
		t.Errorf("%d wait", n)
	}
}
