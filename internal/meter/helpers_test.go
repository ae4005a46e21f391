package meter

import (
	"math"
	"testing"
	"time"
	_ "time/tzdata" // so that every system has the zones
)

// Times in microseconds.
const (
	second    = int64(1_000_000)
	minute    = 60 * second
	hour      = 60 * minute
	minWindow = int64(1000)
	maxWindow = 366 * 24 * hour
	maxRefill = 36_500 * 24 * hour // of a token bucket

	now0 = 1_764_000_123_456_789
)

// everyAlgorithm returns a meter of a limit of each algorithm.
func everyAlgorithm(window int64) (meters []Meter) {
	for _, l := range []Limit{
		{Quota: 5, Window: window},
		{Quota: 5, Window: window, Algorithm: FixedWindow, Aligned: true},
		{Quota: 5, Window: window, Algorithm: TokenBucket, Capacity: 9},
		{Quota: 5, Window: window, Algorithm: BucketedWindow, Precision: window / 60},
		{Quota: 5, Window: window, Algorithm: SlidingLog},
		{Quota: 5, Window: window, Algorithm: Lockout, Waits: Waits{First: minute, Factor: 2, Longest: hour, Decay: hour}},
		{Quota: 5, Window: Day, Algorithm: Calendar, Zone: time.UTC},
	} {
		l.Capacity = max(l.Capacity, l.Quota)
		meters = append(meters, New(l))
	}
	return meters
}

// zones are zones whose clocks change in different ways: at midnight (Cairo,
// Beirut, Sao_Paulo), a minute after it (St_Johns), by half an hour (Lord_Howe),
// by a whole day (Apia, Kwajalein), never (Kathmandu, UTC).
var zones = []string{
	"UTC", "Europe/Berlin", "Africa/Cairo", "Asia/Beirut", "America/Sao_Paulo", "America/St_Johns", "America/Havana", "America/Santiago",
	"Australia/Lord_Howe", "Pacific/Apia", "Pacific/Kwajalein", "Asia/Kathmandu", "Asia/Kolkata", "America/New_York", "Africa/Casablanca", "Atlantic/Azores",
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// timeOf returns the time of a state, which is not that of a token bucket, 0 if it has none.
func timeOf(m *Meter, w []uint64) int64 {
	switch m.Algorithm {
	case BucketedWindow:
		return int64(w[bucketsNewest]) * m.Precision
	case SlidingLog:
		hits := logHits(w)
		return int64(hits[len(hits)-1])
	case Lockout:
		return loadLockout(w).start
	default:
		return loadCell(w).t
	}
}

// Forever is the wait of a cost that is never allowed.
const Forever int64 = math.MaxInt64

func (m *Meter) Advance(w []uint64, now int64) (at int64, far bool) {
	return m.Decide(new(Result), w, now, 0)
}

// Remaining returns the largest cost that is allowed by a state that has been advanced to now.
func (m *Meter) Remaining(w []uint64, now int64) int64 { return m.arithmetic.left(m, w, now) }

// Allows reports whether a state that has been advanced to now allows cost.
func (m *Meter) Allows(w []uint64, now, cost int64) bool { return cost <= m.Remaining(w, now) }

// result returns what is reported of a decision on cost.
func (m *Meter) result(w []uint64, now, cost int64) (r Result) {
	r.Remaining, r.Allowed = m.Remaining(w, now), m.Allows(w, now, cost)
	m.Report(&r, w, now, cost)
	return r
}

// Wait returns how long it takes until cost is allowed.
func (m *Meter) Wait(w []uint64, now, cost int64) int64 {
	if d := m.result(w, now, cost).RetryAfter; d != Never {
		return d.Microseconds()
	}
	return Forever
}

// Outlook returns what is left, and how long it takes until all is and until more is.
func (m *Meter) Outlook(w []uint64, now int64) (left, reset, more int64) {
	r := m.result(w, now, 0)
	return r.Remaining, r.ResetAfter.Microseconds(), r.MoreAfter.Microseconds()
}
