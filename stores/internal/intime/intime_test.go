package intime

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func batch() *core.Batch {
	return &core.Batch{Items: []core.Item{
		{Key: []byte("a"), Cost: 1, Results: make([]core.Result, 2)},
		{Key: []byte("bc"), Cost: 2, Results: make([]core.Result, 1), Quotas: []int64{3}},
		{Key: []byte("d"), Results: make([]core.Result, 2), Quotas: []int64{4, 5}},
	}}
}

// doing does an operation with this function.
type doing func(own *core.Batch) error

func (f doing) Do(_ context.Context, own *core.Batch) error { return f(own) }

func TestAnAnswerInTime(t *testing.T) {
	b := batch()
	err := New(time.Second).Do(t.Context(), doing(func(own *core.Batch) error {
		if own == b || &own.Items[0] == &b.Items[0] || &own.Items[1].Quotas[0] == &b.Items[1].Quotas[0] || !reflect.DeepEqual(own, b) {
			t.Errorf("the operation works on %+v", own)
		}
		own.Allowed, own.Degraded, own.Cached, own.Items[1].At, own.Items[0].Unknown = true, true, true, 7, true
		own.Items[0].Results[1].Remaining, own.Items[1].Results[0].Remaining = 5, 6
		return nil
	}), b)
	if err != nil || !b.Allowed || !b.Degraded || !b.Cached || !b.Items[0].Unknown || b.Items[1].Unknown || b.Items[1].At != 7 || b.Items[0].Results[1].Remaining != 5 || b.Items[1].Results[0].Remaining != 6 {
		t.Errorf("%+v, %v", b, err)
	}
}

// Who waits is let go in time, or when its context ends, and what comes later changes nothing of theirs.
func TestNoAnswerInTime(t *testing.T) {
	gone := errors.New("gone")
	for want, stays := range map[error]time.Duration{ErrTimeout: time.Hour, gone: 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer time.AfterFunc(stays, func() { cancel(gone) }).Stop()
			b, late, ended := batch(), make(chan struct{}), false
			start := time.Now()
			err := New(100*time.Millisecond).Do(ctx, doing(func(own *core.Batch) error {
				<-late
				own.Allowed, own.Items[0].Results[0].Remaining, ended = true, 9, true
				return nil
			}), b)
			if took := time.Since(start); !errors.Is(err, want) || took != min(stays, 100*time.Millisecond) {
				t.Errorf("%v after %v", err, took)
			}
			close(late)
			synctest.Wait()
			if !ended || b.Allowed || b.Items[0].Results[0].Remaining != 0 {
				t.Errorf("ended %v, %+v", ended, b)
			}
		})
	}
}

func TestAPanicIsAnError(t *testing.T) {
	err := New(time.Hour).Do(t.Context(), doing(func(*core.Batch) error { panic("fault") }), batch())
	if err == nil || err.Error() != "the store panicked: fault" {
		t.Error(err)
	}
	if err := New(time.Hour).Do(t.Context(), doing(func(*core.Batch) error { return err }), batch()); err == nil {
		t.Error("the store's error is lost")
	}
}

// What hangs is bounded, and there is room again when it has ended.
func TestTooManyUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, late := New(time.Millisecond), make(chan struct{})
		hang := doing(func(*core.Batch) error {
			<-late
			return nil
		})
		for range maxRunning {
			go func() { _ = r.Do(t.Context(), hang, batch()) }()
		}
		synctest.Wait()
		if err := r.Do(t.Context(), hang, batch()); !errors.Is(err, ErrBusy) || !errors.Is(err, core.ErrNotCharged) {
			t.Error(err)
		}
		close(late)
		synctest.Wait()
		if err := r.Do(t.Context(), hang, batch()); err != nil {
			t.Error(err)
		}
	})
}

// An answer means that the operation's room is free again: of two operations, one
// after the other, the second one is never denied room because of the first one. Here the
// room cannot be given back before the test lets it, and so there is no answer.
func TestAnAnswerComesAfterTheRoomIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(time.Second)
		err := r.Do(t.Context(), doing(func(*core.Batch) error {
			<-r.running // the operation's own
			return nil
		}), batch())
		if !errors.Is(err, ErrTimeout) {
			t.Errorf("the answer came before the room was free: %v", err)
		}
		r.running <- struct{}{}
		synctest.Wait()
	})
}
