package policy_test

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// denials counts the requests that the limits of a file deny. Package observe counts
// more.
type denials struct{ n int }

func (r *denials) Observe(string, []core.Rule) core.ObserverFuncs {
	return core.ObserverFuncs{Decided: func(_ context.Context, o core.Observation) {
		if o.Reason == core.ReasonOverLimit {
			r.n++
		}
	}}
}

func ExampleWithObserver() {
	counted := new(denials)
	set := core.Must(policy.Parse("policies.yaml", []byte(`
name: site
policies:
  - name: api
    limits: 2/m
    key: ip
`), policy.WithObserver(counted)))
	defer func() { _ = set.Close() }()
	for range 5 {
		set.Limiter().Allow(context.Background(), core.Hit{Rule: "api", Key: "192.0.2.1"})
	}
	fmt.Println(counted.n, "denied")
	// Output: 3 denied
}
