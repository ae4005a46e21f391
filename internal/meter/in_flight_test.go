package meter

import (
	"math/rand/v2"
	"testing"
)

func leaseMeter(quota, window int64) Meter {
	return New(Limit{Algorithm: InFlight, Quota: quota, Capacity: quota, Window: window})
}

// plainLease is a lease as the comment of in_flight.go defines it.
type plainLease struct{ end, cost int64 }

// What a Meter counts is what a list of leases counts, whatever order things come in.
func TestLeasesFollowTheDefinition(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		m := leaseMeter(r.Int64N(8), second+r.Int64N(second))
		var w []uint64
		leases, now, next := map[uint64]plainLease{}, int64(now0), uint64(1)
		used := func() (n int64) {
			for id, l := range leases {
				if l.end <= now {
					delete(leases, id)
				}
				n += leases[id].cost
			}
			return n
		}
		grow := func() {
			if need := m.Words(w, 1); len(w) < need {
				wider := make([]uint64, need)
				m.Grow(wider, w)
				w = wider
			}
		}
		for step := range 60 {
			cost := r.Int64N(4)
			m.Advance(w, now)
			if got, want := m.Allows(w, now, cost), cost == 0 || used()+cost <= m.Quota(); got != want {
				t.Fatalf("seed %d, step %d: %d admitted %v, want %v: %v of %d", seed, step, cost, got, want, leases, m.Quota())
			}
			if got, want := m.Remaining(w, now), max(0, m.Quota()-used()); got != want {
				t.Fatalf("seed %d, step %d: %d left, want %d: %v of %d", seed, step, got, want, leases, m.Quota())
			}
			switch id := r.Uint64N(next); r.IntN(5) {
			case 0, 1:
				if cost > 0 && m.Allows(w, now, cost) {
					grow()
					m.Lease(w, now, next, cost)
					leases[next] = plainLease{now + m.Window(), cost}
					next++
				}
			case 2:
				_, known := leases[id]
				if m.Release(w, id) != known {
					t.Fatalf("seed %d, step %d: the release of %d returned %v", seed, step, id, !known)
				}
				delete(leases, id)
			case 3:
				cost = max(cost, 1)
				if l, known := leases[id]; known {
					cost = l.cost
				}
				grow()
				m.Renew(w, now, id, cost)
				leases[id] = plainLease{now + m.Window(), cost}
			default:
				now += r.Int64N(m.Window())
			}
			if got := readBack(t, &m, w); len(w) > 0 && m.Expiry(got) != m.Expiry(w) {
				t.Fatalf("seed %d, step %d: the state changes in its stored form", seed, step)
			}
		}
	}
}

// readBack returns a state after it has been stored and read.
func readBack(t *testing.T, m *Meter, w []uint64) []uint64 {
	t.Helper()
	if leases(w) == 0 {
		return nil
	}
	r := Reader{Rest: m.AppendState(nil, w)}
	got := m.ReadState(&r)
	if r.Bad || len(r.Rest) > 0 || leases(got) != leases(w) {
		t.Fatalf("%v is stored as %v, and read as %v (%+v)", w, m.AppendState(nil, w), got, r)
	}
	for i := range leases(w) {
		for j, word := range leaseAt(w, i) {
			if leaseAt(got, i)[j] != word {
				t.Fatalf("lease %d is %v, and read as %v", i, leaseAt(w, i), leaseAt(got, i))
			}
		}
	}
	return got
}

// A lease ends at the very instant, and one that a clock which was wrong has made end too
// late is shortened.
func TestTheEndOfALease(t *testing.T) {
	m := leaseMeter(1, second)
	w := make([]uint64, m.Words(nil, 1))
	m.Lease(w, now0, 7, 1)
	for _, row := range []struct{ after, left int64 }{{0, 0}, {second - 1, 0}, {second, 1}} {
		v := append([]uint64(nil), w...)
		if m.Advance(v, now0+row.after); m.Remaining(v, now0+row.after) != row.left {
			t.Errorf("%d µs later %d left, want %d", row.after, m.Remaining(v, now0+row.after), row.left)
		}
	}
	for _, row := range []struct {
		back int64
		far  bool
		end  int64
	}{{second - 1, false, now0 + second}, {second, true, now0}} {
		v := append([]uint64(nil), w...)
		now := now0 - row.back
		if m.Far(v, now) != row.far {
			t.Errorf("%d µs before: far %v", row.back, !row.far)
		}
		if m.Advance(v, now); m.Expiry(v) != row.end {
			t.Errorf("%d µs before: ends at %d, want %d", row.back, m.Expiry(v), row.end)
		}
	}
}

func TestChargesAndRefundsLeaveLeasesAlone(t *testing.T) {
	m := leaseMeter(5, second)
	w := make([]uint64, m.Words(nil, 1))
	m.Lease(w, now0, 7, 2)
	m.Charge(w, now0, 3)
	m.Renew(w, now0, 8, 0)
	if leases(w) != 1 || m.Remaining(w, now0) != 3 {
		t.Errorf("%d left after a charge, and a renewal of no slots", m.Remaining(w, now0))
	}
	if m.Refund(w, now0, now0, 0, 2); m.Remaining(w, now0) != 3 {
		t.Errorf("%d left after a refund", m.Remaining(w, now0))
	}
	if w := m.Wait(w, now0, 3); w != 0 {
		t.Errorf("the wait for all that is left is %d", w)
	}
	if w := m.Wait(w, now0, 4); w != second {
		t.Errorf("the wait for 4 is %d", w)
	}
	if w := m.Wait(w, now0, 6); w != Forever {
		t.Errorf("the wait for more than the quota is %d", w)
	}
}

func TestAStateHoldsMaxLeases(t *testing.T) {
	m := leaseMeter(1, second)
	w := make([]uint64, leasesHeader+leaseWords*(MaxLeases+1))
	for i := range uint64(MaxLeases + 1) {
		m.Renew(w, now0, i+1, 1)
	}
	if leases(w) != MaxLeases {
		t.Errorf("%d leases", leases(w))
	}
	readBack(t, &m, w)
}
