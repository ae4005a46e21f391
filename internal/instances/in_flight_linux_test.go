package instances_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/internal/redistest"
)

// A process stands still for longer than a lease, and its slots are granted to another
// one. When it goes on, its requests still run and count again. Its late release frees its
// own slots, and no other.
func TestAProcessThatStoodStillCountsAgain(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	w := inFlight{Addr: addr, Callers: 2, Quota: 3, Lease: time.Second, Keeps: true}
	p := startInFlight(t, w)
	p.Begin()
	p.Wait("held", 2)
	l, closeStore, err := w.limiter()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeStore() }()
	remainingSlots(t, w, 1, "while it runs")
	p.Signal(syscall.SIGSTOP)
	remainingSlots(t, w, 3, "after it was stopped")
	var releases []func()
	for range 3 {
		release, ok, err := l.Acquire(t.Context(), oneUser)
		if err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		releases = append(releases, release)
	}
	p.Signal(syscall.SIGCONT)
	pause(2*w.Lease, nil) // both have renewed
	releases[0]()
	if release, ok, err := l.Acquire(t.Context(), oneUser); err != nil || ok {
		t.Errorf("with two and two of three in flight: %v, %v", ok, err)
		release()
	}
	releases[1]()
	remainingSlots(t, w, 0, "with two and one in flight")
	p.Stop()
	remainingSlots(t, w, 2, "after the late releases")
	releases[2]()
	remainingSlots(t, w, 3, "in the end")
}
