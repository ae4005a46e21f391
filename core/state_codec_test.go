package core

import (
	"slices"
	"testing"
	"time"
)

// FuzzStoredState decodes any bytes: without a panic, and to states that the
// arithmetic can work with, whatever they are.
func FuzzStoredState(f *testing.F) {
	limits := []Limit{
		PerHour(5),
		{Quota: 5, Window: time.Hour, Algorithm: FixedWindow, Aligned: true},
		{Quota: 5, Window: time.Hour, Algorithm: TokenBucket, Burst: 9},
		{Quota: 5, Window: time.Hour, Algorithm: BucketedWindow, Precision: time.Minute},
		{Quota: 5, Window: time.Hour, Algorithm: SlidingLog},
	}
	meters := newMeters(limits)
	var ids []identity
	states := make([][]uint64, len(limits))
	const now = 1_764_000_000_000_000
	for i, l := range limits {
		ids = append(ids, l.identity())
		states[i] = make([]uint64, meters[i].words(nil, 3))
		meters[i].charge(states[i], now, 3)
	}
	value := encodeStates(ids, meters, states)
	f.Add(value)
	f.Add(value[:len(value)/2])
	f.Add([]byte("5 "))
	f.Fuzz(func(t *testing.T, value []byte) {
		states := decodeStates(value, ids, meters)
		for i := range meters {
			m := &meters[i]
			m.advance(states[i], now)
			if left := m.remaining(states[i], now); left < 0 || left > m.capacity {
				t.Errorf("%v: %d left", limits[i], left)
			}
			if wait := m.wait(states[i], now, 1); wait < 0 || wait > 3*m.window {
				t.Errorf("%v: wait %d", limits[i], wait)
			}
			if need := m.words(states[i], 1); len(states[i]) < need {
				w := make([]uint64, need)
				m.grow(w, states[i])
				states[i] = w
			}
			if m.admits(states[i], now, 1) {
				m.charge(states[i], now, 1)
			}
		}
		again := encodeStates(ids, meters, states)
		if back := encodeStates(ids, meters, decodeStates(again, ids, meters)); !slices.Equal(back, again) {
			t.Errorf("%x decodes and encodes to %x", again, back)
		}
	})
}
