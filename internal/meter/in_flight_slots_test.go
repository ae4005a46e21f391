package meter

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TakeSlot is Admits, and then Lease with a cost of 1.
func TestTakeSlotIsItsSteps(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	taken, denied, grown := 0, 0, 0
	for range 200 {
		m := leaseMeter(r.Int64N(6), second+r.Int64N(second))
		var w []uint64 // as long as the leases need
		grow := func() {
			wider := make([]uint64, leasesHeader+leaseWords*(leases(w)+1))
			m.Grow(wider, w)
			w = wider
		}
		now := int64(now0)
		for id := range uint64(40) {
			m.Advance(w, now)
			steps := make([]uint64, len(w)+leaseWords+leasesHeader)
			m.Grow(steps, w)
			before, room := append([]uint64(nil), w...), len(w) >= leasesHeader+leaseWords*(leases(w)+1)
			left, ok, full := m.TakeSlot(w, now, id)
			if admits := m.Admits(before, now, 1); full != (admits && !room) || ok != (admits && room) {
				t.Fatalf("seed %d: allowed %t, full %t; admits %t, room %t", seed, ok, full, admits, room)
			}
			if !ok && !slices.Equal(w, before) {
				t.Fatalf("seed %d: %v was changed to %v", seed, before, w)
			}
			if full {
				grow()
				grown++
				if left, ok, full = m.TakeSlot(w, now, id); !ok || full {
					t.Fatalf("seed %d: denied although there is room: full %t", seed, full)
				}
			}
			if ok {
				m.Lease(steps, now, id, 1)
				taken++
			} else {
				denied++
			}
			if want := m.Remaining(steps, now); left != want || m.Remaining(w, now) != want || m.Expiry(w) != m.Expiry(steps) {
				t.Fatalf("seed %d: %d left, and then %d until %d, want %d until %d", seed, left, m.Remaining(w, now), m.Expiry(w), want, m.Expiry(steps))
			}
			switch r.IntN(4) {
			case 0:
				m.Release(w, r.Uint64N(id+1))
			case 1:
				now += r.Int64N(second)
			case 2: // room to spare
				grow()
			}
		}
	}
	if taken < 1000 || denied < 1000 || grown < 200 {
		t.Errorf("%d slots were taken, %d denied, and %d states grown: the test shows little", taken, denied, grown)
	}
}

// A lease that gets another number stays the same in all else.
func TestALeaseGetsAnotherNumber(t *testing.T) {
	m := leaseMeter(5, second)
	w := make([]uint64, leasesHeader+leaseWords*2)
	if !m.Leases() || m.HasLeases(nil) || m.HasLeases(w) {
		t.Error("a state without leases has leases")
	}
	m.Lease(w, now0, 7, 2)
	m.Lease(w, now0+1, 8, 1)
	if m.Rename(w, 9, 10) || !m.Rename(w, 7, 10) || m.Rename(w, 7, 11) || !m.Rename(w, 8, 7) {
		t.Error("a lease is renamed once, under its number")
	}
	if m.Remaining(w, now0) != 2 || m.Release(w, 8) || !m.Release(w, 7) || !m.HasLeases(w) || m.Remaining(w, now0) != 3 {
		t.Errorf("after the release of 7: %v", w)
	}
	if !m.Release(w, 10) || m.HasLeases(w) {
		t.Errorf("after the release of 10: %v", w)
	}
	if other := New(Limit{Quota: 1, Capacity: 1, Window: second}); other.Leases() {
		t.Error("a window counts leases")
	}
}
