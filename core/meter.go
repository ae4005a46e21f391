package core

import (
	"math"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// meterAlgorithms are the algorithms as package meter calls them.
var meterAlgorithms = [...]meter.Algorithm{
	SlidingWindow:  meter.SlidingWindow,
	FixedWindow:    meter.FixedWindow,
	BucketedWindow: meter.BucketedWindow,
	SlidingLog:     meter.SlidingLog,
	TokenBucket:    meter.TokenBucket,
	Leases:         meter.InFlight,
}

// known returns whether a is one of the algorithms.
func (a Algorithm) known() bool { return int(a) < len(meterAlgorithms) }

// meter returns the algorithm as package meter calls it.
func (a Algorithm) meter() meter.Algorithm {
	if !a.known() {
		return math.MaxUint8 // Validate returns an error for it
	}
	return meterAlgorithms[a]
}

// meter returns the limit as package meter counts it.
func (l Limit) meter() meter.Limit {
	m := meter.Limit{
		Algorithm: l.Algorithm.meter(),
		Aligned:   l.Aligned,
		Quota:     l.Quota,
		Capacity:  l.Capacity(),
		Window:    l.Window.Microseconds(),
		Precision: l.Precision.Microseconds(),
	}
	if l.Zone != nil {
		m.Algorithm, m.Zone = meter.Calendar, l.Zone
	}
	if !l.Lockout.none() {
		k := l.Lockout.filled()
		m.Algorithm = meter.Lockout
		m.Waits = meter.Waits{First: k.First.Microseconds(), Longest: k.Max.Microseconds(), Factor: k.Factor, Decay: k.Decay.Microseconds()}
	}
	return m
}

// The stores of this module convert limits too, by package internal/limits.
// What it returns is of no use to other programs, so that no exported method
// does it.
func init() {
	meter.FromCore = func(limit any) meter.Limit { return limit.(Limit).meter() }
}

func newMeter(l Limit) meter.Meter { return meter.New(l.meter()) }

func (r *Result) meter() *meter.Result { return (*meter.Result)(r) }
