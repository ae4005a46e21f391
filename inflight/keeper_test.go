package inflight_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
)

// A slot is held for many leases; one renewal is for all slots of the process.
func TestSlotsAreRenewedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := newLimiter(t, inflight.Config{Max: 100, Store: m, Lease: 3 * time.Second})
		var releases []func()
		for i := range 100 {
			release, ok, err := l.Acquire(t.Context(), fmt.Sprint(i%7))
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			releases = append(releases, release)
		}
		for range 60 { // other slots do not postpone a renewal
			release, _, _ := l.Acquire(t.Context(), "other")
			time.Sleep(500 * time.Millisecond)
			release()
		}
		time.Sleep(time.Millisecond)
		if synctest.Wait(); m.held() != 100 || m.renewals != 30 {
			t.Errorf("%d held after %d renewals, want 30", m.held(), m.renewals)
		}
		for _, release := range releases {
			release()
		}
		time.Sleep(time.Minute)
		if synctest.Wait(); m.held() != 0 || m.renewals > 31 {
			t.Errorf("%d held in the end, %d renewals", m.held(), m.renewals)
		}
	})
}

// A store that fails denies, and an acquire that it has done all the same is released. At most 10,000
// slots wait for their release, and 500 are released together.
func TestAnAcquireThatFailsIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		var log bytes.Buffer
		l := newLimiter(t, inflight.Config{Max: 1, Store: m, Log: slog.New(slog.NewTextHandler(&log, nil))})
		m.fail(func(operation string) (before, after bool) { return false, operation == "acquire" })
		if d := l.Check(request(t.Context(), "k")); d.Allowed || d.Reason != core.ReasonFailed || d.Status() != 503 || !strings.Contains(log.String(), errGone.Error()) {
			t.Errorf("%v, logged: %s", d, &log)
		}
		if m.held() != 1 || l.Held() != 0 {
			t.Errorf("%d held, %d here", m.held(), l.Held())
		}
		time.Sleep(time.Second)
		if synctest.Wait(); m.held() != 0 {
			t.Errorf("%d held after a second", m.held())
		}
		releases := 0
		m.fail(func(operation string) (before, after bool) {
			if operation == "release" {
				releases++
			}
			return operation == "acquire", false
		})
		for range 10_001 {
			if release, ok, err := l.Acquire(t.Context(), "k"); ok || release == nil || !errors.Is(err, errGone) {
				t.Fatal(ok, err)
			}
		}
		time.Sleep(time.Second)
		if synctest.Wait(); releases != 20 {
			t.Errorf("%d releases of 10,001 slots", releases)
		}
	})
}

// A release that fails is repeated until the store answers, or its lease has ended.
func TestAReleaseThatFailsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := newLimiter(t, inflight.Config{Max: 1, Store: m})
		var tries atomic.Int64
		var gone atomic.Bool
		gone.Store(true)
		m.fail(func(operation string) (before, after bool) {
			if operation != "release" {
				return false, false
			}
			tries.Add(1)
			return gone.Load(), false
		})
		r := request(t.Context(), "k")
		l.Settle(r, l.Check(r), core.Outcome{})
		time.Sleep(inflight.DefaultLease - 4*time.Second)
		if synctest.Wait(); m.held() != 1 || tries.Load() < 5 || tries.Load() > 30 {
			t.Errorf("%d held, %d tries", m.held(), tries.Load())
		}
		gone.Store(false)
		time.Sleep(2 * time.Second)
		if synctest.Wait(); m.held() != 0 {
			t.Errorf("%d held when the store answers", m.held())
		}

		gone.Store(true)
		l.Settle(r, l.Check(r), core.Outcome{})
		time.Sleep(time.Minute)
		synctest.Wait()
		before := tries.Load()
		time.Sleep(time.Minute)
		if synctest.Wait(); m.held() != 0 || tries.Load() != before {
			t.Errorf("%d held, %d more tries after the lease", m.held(), tries.Load()-before)
		}
	})
}

// The release of a client that has gone reaches the store at once.
func TestAReleaseOfAClientThatHasGone(t *testing.T) {
	m := newMemory()
	l := newLimiter(t, inflight.Config{Max: 1, Store: m})
	ctx, cancel := context.WithCancel(t.Context())
	r := request(ctx, "k")
	d := l.Check(r)
	cancel()
	if l.Settle(r, d, core.Outcome{Canceled: true}); !d.Allowed || m.held() != 0 {
		t.Errorf("%v, %d held", d, m.held())
	}
}

// A slot that is released while it is renewed stays released.
func TestAReleaseDuringARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		hung := &hanging{memory: m, hold: make(chan struct{})}
		l := newLimiter(t, inflight.Config{Max: 1, Store: hung, Lease: 30 * time.Second})
		release, ok, err := l.Acquire(t.Context(), "k")
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		time.Sleep(10*time.Second + time.Millisecond) // the renewal hangs
		synctest.Wait()
		release()
		close(hung.hold) // and comes after the release
		time.Sleep(time.Second)
		if synctest.Wait(); m.held() != 0 {
			t.Errorf("%d held", m.held())
		}
	})
}

// hanging makes renewals wait.
type hanging struct {
	*memory
	hold chan struct{}
}

func (h *hanging) RenewSlots(ctx context.Context, limiter string, slots []inflight.Slot, lease time.Duration) error {
	select {
	case <-h.hold:
	case <-ctx.Done():
		return ctx.Err()
	}
	return h.memory.RenewSlots(ctx, limiter, slots, lease)
}

// A slot whose acquire has taken most of its lease is renewed at once, also beside other slots.
func TestAnAcquireThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := newLimiter(t, inflight.Config{Max: 2, Store: slow{m}, Lease: 3 * time.Second})
		for range 2 {
			release, ok, err := l.Acquire(t.Context(), "k")
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			defer release()
			time.Sleep(600 * time.Millisecond)
		}
		if m.held() != 2 {
			t.Errorf("%d held", m.held())
		}
	})
}

// slow answers 2.5 seconds after it has given a slot.
type slow struct{ *memory }

func (s slow) AcquireSlot(ctx context.Context, limiter string, slot inflight.Slot, most int64, lease time.Duration) (int64, bool, error) {
	defer time.Sleep(2500 * time.Millisecond)
	return s.memory.AcquireSlot(ctx, limiter, slot, most, lease)
}

// A renewal that hangs is given up in time for another one.
func TestARenewalThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := newLimiter(t, inflight.Config{Max: 1, Store: &hangingOnce{memory: m}, Lease: 3 * time.Second})
		release, ok, err := l.Acquire(t.Context(), "k")
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		defer release()
		time.Sleep(3*time.Second + time.Millisecond)
		if m.held() != 1 {
			t.Errorf("%d held", m.held())
		}
	})
}

// hangingOnce makes the first renewal wait until a millisecond after the end of its context.
type hangingOnce struct {
	*memory
	once sync.Once
}

func (h *hangingOnce) RenewSlots(ctx context.Context, limiter string, slots []inflight.Slot, lease time.Duration) error {
	h.once.Do(func() { <-ctx.Done(); time.Sleep(time.Millisecond) })
	return h.memory.RenewSlots(ctx, limiter, slots, lease)
}

// Close ends the context of a renewal and waits for its end, and nothing goes on after it: the slots
// end with their leases.
func TestCloseEndsTheRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := newLimiter(t, inflight.Config{Max: 1, Store: &hangingOnce{memory: m}, Lease: 30 * time.Second})
		release, _, _ := l.Acquire(t.Context(), "k")
		other, _, _ := l.Acquire(t.Context(), "other")
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		began := time.Now()
		if err := l.Close(); err != nil || time.Since(began) != time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if other(); m.held() != 1 {
			t.Errorf("%d held, want one: the other is released at once", m.held())
		}
		time.Sleep(20 * time.Second)
		if m.held() != 0 {
			t.Errorf("%d held a lease after Close", m.held())
		}
		release()
	})
}

// A process whose renewals have failed for longer than a lease has lost its slots. They count
// again when it renews them.
func TestSlotsThatWereLostCountAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		here, there := newLimiter(t, inflight.Config{Max: 1, Store: m}), newLimiter(t, inflight.Config{Max: 1, Store: m})
		mine, _, _ := here.Acquire(t.Context(), "k")
		m.fail(func(operation string) (before, after bool) { return operation == "renew", false })
		time.Sleep(inflight.DefaultLease - 3*time.Second)
		m.fail(func(string) (before, after bool) { return false, false })
		time.Sleep(2900 * time.Millisecond)
		if synctest.Wait(); m.renewals != 1 {
			t.Errorf("%d renewals in the last seconds of the lease", m.renewals)
		}
		m.fail(func(operation string) (before, after bool) { return operation == "renew", false })
		time.Sleep(inflight.DefaultLease + time.Second)
		theirs, ok, err := there.Acquire(t.Context(), "k")
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		m.fail(func(string) (before, after bool) { return false, false })
		time.Sleep(inflight.DefaultLease)
		if synctest.Wait(); m.held() != 2 {
			t.Errorf("%d held, want 2", m.held())
		}
		mine()
		if _, ok, _ := there.Acquire(t.Context(), "k"); ok || m.held() != 1 {
			t.Errorf("the slot of another process was freed: %t, %d held", ok, m.held())
		}
		theirs()
	})
}
