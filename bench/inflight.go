package main

import (
	"fmt"
	"net/http"
	"runtime"

	"github.com/floodgate-go/floodgate/bench/peers"
)

// inFlight measures the middleware for what runs at once, above the bare handler.
func inFlight(e effort, p peers.Peer) ([]Table, error) {
	if p.InFlight == nil {
		return nil, nil
	}
	took := Table{
		Title: "The middleware of net/http for what runs at once, above the bare handler", Unit: "ns", Lower: true, Ours: "floodgate",
		Text: "Nothing is refused. Ours limits each client's address, and writes its headers; chi's Throttle limits all clients together, and writes none.",
	}
	allocs := Table{Title: "Allocations of the middleware for what runs at once", Lower: true, Ours: "floodgate", Decimals: 1}
	bare := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, callers := range []int{1, runtime.GOMAXPROCS(0)} {
		column := fmt.Sprintf("%d callers", callers)
		if callers == 1 {
			column = "1 caller"
		}
		var without, with Sample
		serve, limited := serveHTTP(bare), serveHTTP(p.InFlight(100)(bare))
		e.measure(callers, func(_, n int) { serve(n) }, &without, nil)
		e.measure(callers, func(_, n int) { limited(n) }, &with, allocs.cell(p, column))
		cell := took.cell(p, column)
		for _, v := range with.Values {
			cell.Values = append(cell.Values, v-without.median())
		}
	}
	return []Table{took, allocs}, nil
}
