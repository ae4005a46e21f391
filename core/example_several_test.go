package core_test

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// Two limiters on one request: who refuses is asked before anybody charges.
func ExampleTogether() {
	all := core.Must(core.New(core.Config{Name: "all", Rules: []core.Rule{{Key: static("k"), Limits: []core.Limit{core.PerMinute(9)}}}}))
	writes := core.Must(core.New(core.Config{Name: "writes", Rules: []core.Rule{{Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}}}))
	for range 2 {
		r := &request{method: "POST"}
		if p := writes.Preview(r); !p.Allowed {
			fmt.Println(p.Limiter, "would refuse")
			continue
		}
		d := core.Together(all.Check(r), writes.Check(r))
		fmt.Println(d.Limiter, d.Remaining)
	}
	// Output:
	// writes 0
	// writes would refuse
}

func ExampleLimiter_Preview() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}}}))
	fmt.Println(limiter.Preview(&request{}).Allowed, limiter.Preview(&request{}).Allowed, limiter.Check(&request{}).Allowed, limiter.Preview(&request{}).Allowed)
	// Output: true true true false
}

func ExampleLimiter_Derive() {
	config := core.Config{Name: "api", Rules: []core.Rule{{Name: "all", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}}}
	limiter := core.Must(core.New(config))
	limiter.Check(&request{})
	config.Rules[0].Limits = []core.Limit{core.PerMinute(2)}
	raised, err := limiter.Derive(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(limiter.Check(&request{}).Allowed, raised.Check(&request{}).Allowed)
	// Output: false true
}
