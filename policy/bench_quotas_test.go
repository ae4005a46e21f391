package policy_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/policy"
)

// manyKeys is a source of the quotas of 100,000 addresses.
type manyKeys struct{}

func (manyKeys) Quotas(_ context.Context, row func(key, quotas string) error) error {
	for i := range 100_000 {
		if err := row(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), fmt.Sprint(1_000_000+i%100)); err != nil {
			return err
		}
	}
	return nil
}

// What a table of 100,000 keys adds to a request.
func BenchmarkQuotas(b *testing.B) {
	for name, more := range map[string]string{"none": "", "table": ", quotas: {source: many, every: 1h}"} {
		b.Run(name, func(b *testing.B) {
			set, err := policy.Parse("f", []byte("policies: [{name: a, key: ip, limits: 1000000/h"+more+"}]"), policy.WithQuotas("many", manyKeys{}))
			if err != nil {
				b.Fatal(err)
			}
			defer set.Close() //nolint:errcheck // nothing depends on it
			requests := make([]*explained, 100_000)
			for i := range requests {
				requests[i] = &explained{address: fmt.Sprintf("10.%d.%d.%d:5", i>>16, i>>8&255, i&255)}
				set.Check(requests[i])
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if d := set.Check(requests[i*7919%len(requests)]); !d.Allowed {
					b.Fatal(d)
				}
			}
		})
	}
}
