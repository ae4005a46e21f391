package core_test

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// A rule that counts failures. A client that goes away before it is answered
// has failed, too: StatusCanceled is between 400 and 499.
func ExampleOutcome() {
	rule := core.Rule{
		Name: "failures", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(5)},
		Counts: func(_ core.Request, o core.Outcome) bool { return o.Panicked || o.Status >= 400 && o.Status < 500 },
		Clears: func(_ core.Request, o core.Outcome) bool { return !o.Panicked && !o.Canceled && o.Status < 400 },
	}
	for _, o := range []core.Outcome{{Status: 200}, {Status: 401}, {Status: core.StatusCanceled, Canceled: true}} {
		fmt.Println(o.Status, rule.Counts(nil, o), rule.Clears(nil, o))
	}
	// Output:
	// 200 false true
	// 401 true false
	// 499 true false
}
