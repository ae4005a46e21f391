package core_test

import (
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// 40 hits in the minute before, half of which still counts, and 10 in this one.
func ExampleWindowMeter() {
	w := core.Must(core.NewWindowMeter(core.Limit{Quota: 35, Window: time.Minute, Aligned: true}))
	now := time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC).UnixMicro()
	r := w.Judge(now, 10, 40, 1)
	fmt.Println(r.Allowed, r.Remaining, 10+40*w.Weight(now))
	// Output: true 5 30
}

// A limiter that guards secrets does not begin anew if its counters are damaged.
func ExampleUnreadable() {
	limiter, err := core.New(core.Config{
		Name:           "reset-password",
		Rules:          []core.Rule{{Name: "account", Key: core.TakeOnly, Limits: []core.Limit{core.PerHour(5)}}},
		DenyUnreadable: true,
	})
	fmt.Println(limiter.Name(), err, core.ReplaceUnreadable, core.DenyUnreadable)
	// Output: reset-password <nil> replace deny
}
