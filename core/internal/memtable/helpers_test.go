package memtable

import (
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// Times in microseconds.
const (
	second = int64(1_000_000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour

	now0 = 1_764_000_123_456_789
)

func sliding(quota, window int64) meter.Limit {
	return meter.Limit{Quota: quota, Capacity: quota, Window: window}
}

func perMinute(quota int64) meter.Limit { return sliding(quota, minute) }
func perHour(quota int64) meter.Limit   { return sliding(quota, hour) }
func perDay(quota int64) meter.Limit    { return sliding(quota, day) }

func logOf(quota int64) meter.Limit {
	return meter.Limit{Quota: quota, Capacity: quota, Window: hour, Algorithm: meter.SlidingLog}
}

func bucketed(quota, window, precision int64) meter.Limit {
	return meter.Limit{Quota: quota, Capacity: quota, Window: window, Precision: precision, Algorithm: meter.BucketedWindow}
}

// bind returns the binding of one rule with these limits.
func bind(tb testing.TB, ts *Tables, limits ...meter.Limit) *Binding {
	tb.Helper()
	b, err := ts.Bind("l", []Rule{{"r", limits}})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Place returns the place of a key.
func (b *Binding) Place(rule int, key []byte) (p Place) {
	b.Locate(&p, rule, key)
	return p
}

// open returns the place of the key "k\x00", whose shard it does not lock.
func (b *Binding) open() *Place {
	p := b.Place(0, []byte("k\x00"))
	p.open()
	return &p
}

// take charges cost hits to the key k at now, if its limits admit them, and returns what they say.
func (b *Binding) take(now, cost int64) (results []meter.Result, at int64, allowed bool) {
	p := b.open()
	results, at, allowed = make([]meter.Result, p.Limits()), now, true
	for i := range results {
		m, w := p.Limit(i, meter.Own)
		time, _ := m.Decide(&results[i], w, now, cost)
		at = max(at, time)
		allowed = allowed && results[i].Allowed
	}
	if allowed && cost > 0 {
		p.Insert(nil, now)
	}
	for i := range results {
		p.Report(i, meter.Own, now, cost, allowed && cost > 0, &results[i])
	}
	return results, at, allowed
}

// refund gives back what take charged.
func (b *Binding) refund(now, at, cost int64, results []meter.Result) {
	p := b.open()
	for i := range results {
		p.Refund(i, meter.Own, now, at, results[i].ResetAfter.Microseconds(), cost)
	}
	p.Refunded(now)
}
