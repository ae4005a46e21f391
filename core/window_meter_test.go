package core

import (
	"errors"
	"testing"
	"time"
)

// A WindowMeter says of counts what the in-process store says of the same hits.
func TestWindowMeterAgreesWithMemory(t *testing.T) {
	for _, l := range []Limit{{Quota: 10, Window: time.Minute, Aligned: true}, {Quota: 10, Window: time.Minute, Algorithm: FixedWindow, Aligned: true}} {
		w, err := NewWindowMeter(l)
		if err != nil {
			t.Fatal(err)
		}
		m := newMeter(l)
		const start = 29_400_000 * 60_000_000 // a multiple of a minute
		for prev := range int64(12) {
			for cur := range int64(12) {
				for _, e := range []int64{0, 1, 20_000_000, 59_999_999} {
					for cost := range int64(12) {
						words := []uint64{0, 0}
						if prev > 0 {
							m.charge(words, start-1, prev)
						}
						m.advance(words, start+e)
						if cur > 0 {
							m.charge(words, start+e, cur)
						}
						var want Result
						report(&want, &m, words, start+e, cost, m.admits(words, start+e, cost))
						if got := w.Judge(start+e, cur, prev, cost); got != want {
							t.Fatalf("%v, %d and %d before, %d µs on, cost %d: %+v, want %+v", l, cur, prev, e, cost, got, want)
						}
					}
				}
			}
		}
	}
}

func TestWindowMeterErrors(t *testing.T) {
	for _, l := range []Limit{PerMinute(1), {Quota: 1, Window: time.Minute, Algorithm: SlidingLog}, {Quota: -1, Window: time.Minute, Aligned: true}} {
		if _, err := NewWindowMeter(l); !errors.Is(err, ErrConfig) {
			t.Errorf("%v: %v", l, err)
		}
	}
}
