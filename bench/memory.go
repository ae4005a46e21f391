package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/floodgate-go/floodgate/bench/peers"
)

const million = 1_000_000

// memory measures what a million keys take, and what they cost the garbage
// collector.
func memory(_ effort, p peers.Peer) ([]Table, error) {
	if p.Local == nil || peers.IsExtra(p.Name) {
		return nil, nil
	}
	bytes := Table{Title: "Live memory of a key, at a million keys", Unit: "bytes", Lower: true, Ours: "floodgate"}
	collection := Table{
		Title: "A garbage collection while a million keys are held", Unit: "ms", Lower: true, Ours: "floodgate", Decimals: 2,
		Text: "The time that runtime.GC takes, in a program that holds nothing else.",
	}
	before := heap()
	allow, end := p.Local(ample)
	for i := range million {
		allow(address(10, i)) // a text of its own, which the peer may keep
	}
	cell := bytes.cell(p, "bytes")
	cell.Values = append(cell.Values, float64(heap()-before)/million)
	gc := collection.cell(p, "ms")
	for range 3 {
		begun := time.Now()
		runtime.GC()
		gc.Values = append(gc.Values, time.Since(begun).Seconds()*1000)
	}
	allow("10.0.0.1")
	end()
	return []Table{bytes, collection}, nil
}

func address(first, i int) string {
	return fmt.Sprintf("%d.%d.%d.%d", first, i>>16&255, i>>8&255, i&255)
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below
}

// expiry measures the longest call while a million keys expire and others come.
func expiry(e effort, p peers.Peer) ([]Table, error) {
	if p.Local == nil || peers.IsExtra(p.Name) {
		return nil, nil
	}
	longest := Table{
		Title: "The longest call while a million keys expire", Unit: "µs", Lower: true, Ours: "floodgate",
		Text: fmt.Sprintf("A million keys with a window of %v, then for two and a half windows a new key every ten microseconds from one caller. "+
			"Each value is the longest of some hundred thousand calls, so that whatever else the machine does is in it. "+
			"gin-rate-limit sweeps once a minute, throttled and x/time/rate in a map never.", e.expiry),
	}
	cell := longest.cell(p, "µs")
	cell.Values = append(cell.Values, longestCall(p, e.expiry))
	return []Table{longest}, nil
}

func longestCall(p peers.Peer, window time.Duration) float64 {
	allow, end := p.Local(peers.Limit{Quota: 10, Window: window, Keys: 1_400_000})
	defer end()
	var fresh []string
	for i := range 400_000 {
		fresh = append(fresh, address(172, i))
	}
	for i := range million {
		allow(address(10, i))
	}
	runtime.GC()
	var most time.Duration
	begun := time.Now()
	for i := 0; time.Since(begun) < window*5/2; i++ {
		key := fresh[i%len(fresh)]
		before := time.Now()
		allow(key)
		most = max(most, time.Since(before))
		for time.Since(before) < 10*time.Microsecond { // the pace, kept without giving up the core
		}
	}
	return float64(most) / 1000
}
