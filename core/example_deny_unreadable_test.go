package core_test

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// A limiter that guards secrets does not begin anew if its counters are damaged.
func ExampleConfig_denyUnreadable() {
	limiter, err := core.New(core.Config{
		Name:           "reset-password",
		Rules:          []core.Rule{{Name: "account", Limits: []core.Limit{core.PerHour(5)}}},
		DenyUnreadable: true,
	})
	fmt.Println(limiter.Name(), err)
	// Output: reset-password <nil>
}
