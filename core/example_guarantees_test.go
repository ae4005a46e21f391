package core_test

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// A program that is one of several processes does not start if its limiter
// counts for this process alone.
func ExampleLimiter_Guarantees() {
	limiter := core.Must(core.New(core.Config{
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerMinute(5)}}},
	}))
	if !limiter.Guarantees().Shared {
		fmt.Println("the limiter needs a shared store")
	}
	// Output: the limiter needs a shared store
}
