package meter

import "testing"

// The waits are first × factorⁿ, cut to the longest, and no number overflows.
func TestLockoutWaits(t *testing.T) {
	for _, c := range []struct {
		Waits
		want []int64
	}{
		{Waits{First: 30 * second, Longest: hour, Factor: 2, Decay: hour}, []int64{30 * second, minute, 2 * minute, 4 * minute, 8 * minute, 16 * minute, 32 * minute, hour, hour}},
		{Waits{First: minute, Longest: minute, Factor: 1, Decay: hour}, []int64{minute, minute}},
		{Waits{First: second, Longest: maxWindow, Factor: 1000, Decay: hour}, []int64{second, 1000 * second, 1_000_000 * second, maxWindow, maxWindow}},
		{Waits{First: 3, Longest: 10, Factor: 3, Decay: hour}, []int64{3, 9, 10, 10}},
		{Waits{First: 10_010_496, Longest: maxWindow, Factor: 1024, Decay: hour}, []int64{10_010_496, 10_010_496 << 10, 10_010_496 << 20, maxWindow}},
	} {
		k := newLockoutTerms(c.Waits)
		for i, want := range c.want {
			if got := k.length(uint32(i)); got != want {
				t.Errorf("%+v: wait %d is %d µs, want %d", c.Waits, i, got, want)
			}
		}
		if got := k.length(maxStrikes); got != c.want[len(c.want)-1] {
			t.Errorf("%+v: after many strikes %d µs", c.Waits, got)
		}
	}
	if k := newLockoutTerms(Waits{First: minWindow, Longest: maxWindow, Factor: 2, Decay: hour}); k.levels > maxStrikes {
		t.Errorf("%d strikes are above what a stored state may have", k.levels)
	}
}

// A window or a wait that began less than a window ahead of the clock is believed,
// and one that began a window ahead is moved back to now, with the same length.
func TestALockoutAheadOfTheClock(t *testing.T) {
	m := New(Limit{Quota: 2, Capacity: 2, Window: hour, Algorithm: Lockout, Waits: Waits{First: minute, Factor: 2, Longest: hour, Decay: 10 * hour}})
	open := lockoutCell{start: now0, count: 1}
	locked := lockoutCell{start: now0, count: 2, strikes: 1, until: now0 + minute}
	over := lockoutCell{strikes: 2, until: now0 + 2*minute} // a wait of two minutes, which has ended
	for name, c := range map[string]struct {
		state, moved lockoutCell // moved: at now0 − hour
	}{
		"an open window": {open, lockoutCell{start: now0 - hour, count: 1}},
		"a wait":         {locked, lockoutCell{start: now0 - hour, count: 2, strikes: 1, until: now0 - hour + minute}},
		"an ended wait":  {over, lockoutCell{strikes: 2, until: now0 - hour + 2*minute}},
	} {
		w := make([]uint64, lockoutWords)
		c.state.store(w)
		if m.Advance(w, now0-hour+1); loadLockout(w) != c.state || m.Far(w, now0-hour+1) {
			t.Errorf("%s less than a window ahead: %+v", name, loadLockout(w))
		}
		if !m.Far(w, now0-hour) {
			t.Errorf("%s a window ahead is not far", name)
		}
		if m.Advance(w, now0-hour); loadLockout(w) != c.moved {
			t.Errorf("%s a window ahead becomes %+v, want %+v", name, loadLockout(w), c.moved)
		}
	}
}

// A refund ends a wait only if it makes room: not if the quota has been lowered
// and is used up still.
func TestARefundThatMakesNoRoomLeavesTheWait(t *testing.T) {
	limit := Limit{Quota: 5, Capacity: 5, Window: hour, Algorithm: Lockout, Waits: Waits{First: minute, Factor: 2, Longest: hour, Decay: hour}}
	full := New(limit)
	limit.Quota, limit.Capacity = 3, 3
	m := New(limit)
	for back, want := range map[int64]bool{1: true, 2: true, 3: false} {
		w := make([]uint64, lockoutWords)
		full.Charge(w, now0, 5)
		m.Refund(w, now0+1, now0, 0, back)
		if got := loadLockout(w).locked(now0 + 1); got != want {
			t.Errorf("after a refund of %d of 5 hits and a quota of 3: locked %v, want %v", back, got, want)
		}
	}
}
