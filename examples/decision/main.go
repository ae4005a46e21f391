// Command decision prints decisions, and the key that each one counted.
//
//	go run ./examples/decision
package main

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func main() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(1)}},
	}}))
	for range 2 {
		d := limiter.Check(floodgatetest.NewRequest("GET", "/", floodgatetest.From("10.0.0.5:4000")))
		fmt.Println(d)
		fmt.Println("  the key is", d.Key())
	}
}
