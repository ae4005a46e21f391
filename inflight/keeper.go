package inflight

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// keeper renews the slots that this process holds in a store, and releases those that could
// not be released at once. It works in the goroutine of a timer, which is armed only while
// there is something to do.
//
// If a slot is released during a renewal, the store may get the renewal last. So the slot is released
// again after it.
type keeper struct {
	slots *slots

	mu         sync.Mutex
	held       map[Slot]struct{}
	unreleased map[Slot]time.Time // the slots to release, and when their leases will have ended
	timer      *time.Timer
	due        time.Time // when the timer fires; zero: it is not armed
	renewAt    time.Time
	working    bool // a round is under way, and arms the timer at its end
	closed     bool
	stop       context.CancelFunc // of the round
	round      sync.WaitGroup
}

const (
	// renewals is how often a slot is renewed while its lease lasts.
	renewals = 3
	// together is the most slots in one operation of a store.
	together = 500
	// mostUnreleased is the most slots that wait for their release. Others end with their leases.
	mostUnreleased = 10_000
	// releaseSoon is how long a slot waits for its release in the background, so that many
	// are released together.
	releaseSoon = 50 * time.Millisecond
)

func (k *keeper) every() time.Duration { return k.slots.lease / renewals }

// add renews a slot, which was acquired after began, until it is removed.
func (k *keeper) add(s Slot, began time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at := began.Add(k.every()); len(k.held) == 0 || at.Before(k.renewAt) {
		k.renewAt = at
	}
	k.held[s] = struct{}{}
	k.arm(k.renewAt)
}

// remove stops renewing a slot. It reports whether a renewal of the slot may be under way.
func (k *keeper) remove(s Slot) (renewing bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, s)
	return k.working
}

// releaseLater releases a slot in the background.
func (k *keeper) releaseLater(s Slot) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.unreleased) < mostUnreleased {
		k.unreleased[s] = now.Add(k.slots.lease)
	}
	k.arm(now.Add(releaseSoon))
}

// arm makes the timer fire at a time, or sooner. k is locked.
func (k *keeper) arm(at time.Time) {
	if k.closed || k.working || !k.due.IsZero() && !at.Before(k.due) {
		return
	}
	k.due = at
	if k.timer == nil {
		k.timer = time.AfterFunc(time.Until(at), k.work)
	} else {
		k.timer.Reset(time.Until(at))
	}
}

// work is a round: it renews the held slots, if it is time, and then releases the others.
func (k *keeper) work() {
	now := time.Now()
	k.mu.Lock()
	if k.working || k.closed {
		k.mu.Unlock()
		return
	}
	k.due, k.working = time.Time{}, true
	k.round.Add(1)
	defer k.round.Done()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	k.stop = stop
	var held []Slot
	if !now.Before(k.renewAt) {
		held = slices.Collect(maps.Keys(k.held))
	}
	k.mu.Unlock()

	renewed := k.each(ctx, held, func(ctx context.Context, some []Slot) error {
		return k.slots.store.RenewSlots(ctx, k.slots.name, some, k.slots.lease)
	})
	k.mu.Lock()
	if held != nil {
		if k.renewAt = now.Add(k.every()); renewed < len(held) {
			k.renewAt = now.Add(k.every() / 4)
		}
	}
	unreleased := slices.Collect(maps.Keys(k.unreleased))
	k.mu.Unlock()
	released := k.each(ctx, unreleased, func(ctx context.Context, some []Slot) error {
		return k.slots.store.ReleaseSlots(ctx, k.slots.name, some)
	})
	k.end(unreleased[:released], released < len(unreleased))
}

// end ends a round. failed reports that a release failed.
func (k *keeper) end(released []Slot, failed bool) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.working = false
	for _, s := range released {
		delete(k.unreleased, s)
	}
	maps.DeleteFunc(k.unreleased, func(_ Slot, end time.Time) bool { return !now.Before(end) })
	if len(k.held) > 0 {
		k.arm(k.renewAt)
	}
	switch {
	case len(k.unreleased) == 0:
	case failed:
		k.arm(now.Add(min(time.Second, k.every())))
	default:
		k.arm(now.Add(releaseSoon))
	}
}

// each calls f with the slots, some at a time, until it fails, and returns how many it has done.
func (k *keeper) each(ctx context.Context, all []Slot, f func(ctx context.Context, some []Slot) error) (done int) {
	for some := range slices.Chunk(all, together) {
		ctx, cancel := context.WithTimeout(ctx, k.every())
		err := f(ctx, some)
		cancel()
		if err != nil {
			return done
		}
		done += len(some)
	}
	return done
}

// close stops the timer, and waits for a round that is under way.
func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	if k.timer != nil {
		k.timer.Stop()
	}
	if k.working {
		k.stop()
	}
	k.mu.Unlock()
	k.round.Wait()
}
