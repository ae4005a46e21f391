package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/bench/peers"
)

// ample is a limit that nothing reaches.
var ample = peers.Limit{Quota: 1_000_000_000, Window: time.Hour}

// decision measures a decision in the process.
func decision(e effort, p peers.Peer) ([]Table, error) {
	local := p.Local
	if local == nil {
		local = p.Synced
	}
	if local == nil {
		return nil, nil
	}
	serial := Table{Title: "A decision in the process, one caller", Unit: "ns", Lower: true, Ours: "floodgate"}
	parallel := Table{
		Title: fmt.Sprintf("A decision in the process, %d callers", runtime.GOMAXPROCS(0)), Unit: "ns", Lower: true, Ours: "floodgate",
		Text: "Wall clock time over all decisions: callers that do not get in each other's way take half as long together as one does.",
	}
	allocs := Table{Title: "Allocations of a decision in the process", Lower: true, Ours: "floodgate", Decimals: 1}
	for _, count := range []int{1, 1000, 100_000, 1_000_000} {
		keys, order := keysOf(count)
		column := thousands(float64(count)) + " keys"
		if count == 1 {
			column = "1 key"
		}
		allow, end := local(ample)
		for _, key := range keys {
			allow(key)
		}
		runtime.GC()
		var wrong atomic.Int64
		op := func(worker, n int) {
			at := worker * len(order) / 2
			for range n {
				if at++; at >= len(order) {
					at = 0
				}
				if !allow(keys[order[at]]) {
					wrong.Add(1)
				}
			}
		}
		e.measure(1, op, serial.cell(p, column), allocs.cell(p, column))
		e.measure(runtime.GOMAXPROCS(0), op, parallel.cell(p, column), nil)
		end()
		if wrong.Load() > 0 {
			parallel.cell(p, column).Note = "refuses some that are within the limit"
		}
	}
	return []Table{serial, parallel, allocs}, nil
}

// keysOf returns keys such as addresses, and an order in which to use them.
func keysOf(n int) (keys []string, order []int) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same for all peers
	for i := range n {
		keys = append(keys, fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255))
	}
	order = make([]int, max(1024, min(n*2, 1<<21)))
	for i := range order {
		order[i] = random.IntN(n)
	}
	return keys, order
}
