// Command proxy shows which client address is counted behind a proxy. Look at the lines "a
// liar" and "past the proxy": the address 6.6.6.6 was made up by the client.
//
//	go run ./examples/proxy
package main

import (
	"fmt"

	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func main() {
	behind := keyfuncs.ClientIP(keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
	hops := keyfuncs.ClientIP(keyfuncs.BehindHops("X-Forwarded-For", 1))
	for _, row := range []struct{ what, peer, header string }{
		{"a client", "10.0.0.5:4000", "203.0.113.7"},
		{"a liar", "10.0.0.5:4000", "6.6.6.6, 203.0.113.7"},
		{"two proxies", "10.0.0.5:4000", "203.0.113.7, 10.0.0.9"},
		{"past the proxy", "203.0.113.7:4000", "6.6.6.6"},
	} {
		r := floodgatetest.NewRequest("GET", "/", floodgatetest.From(row.peer), floodgatetest.Header("X-Forwarded-For", row.header))
		b, _ := behind(nil, r)
		h, _ := hops(nil, r)
		fmt.Printf("%-15s Behind: %-12s BehindHops: %s\n", row.what, b, h)
	}
}
