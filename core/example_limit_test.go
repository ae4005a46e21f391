package core_test

import (
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A token bucket with a burst lets that many hits through at once.
func ExampleLimit_Capacity() {
	l := core.Limit{Quota: 100, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 20}
	fmt.Println(l.Capacity(), core.PerMinute(100).Capacity())
	// Output: 20 100
}

// A token bucket is full again after Window × Burst / Quota.
func ExampleLimit_Lifetime() {
	fmt.Println(core.PerMinute(100).Lifetime(), core.Limit{Quota: 60, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 5}.Lifetime())
	// Output: 2m0s 5.000001s
}
