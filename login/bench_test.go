package login_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

func BenchmarkGuard(b *testing.B) {
	g := core.Must(login.NewGuard(login.Config{Field: "username", Secrets: [][]byte{secret}, Attempts: core.PerMinute(core.MaxQuota), Failures: core.Limit{Quota: core.MaxQuota, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Second}}, AccountFailures: core.PerHour(core.MaxQuota)}))
	defer g.Close() //nolint:errcheck // of no interest any more
	r := form("203.0.113.1", "alice")
	field := keyfuncs.PostField("username", keyfuncs.Normalize(func(s string) (string, error) { return login.Normalize(s), nil }))
	b.Run("the field alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = field(nil, r)
		}
	})
	for name, status := range map[string]int{"a failure": 401, "a success": 200} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := g.Check(r)
				g.Settle(r, d, core.Outcome{Status: status})
			}
		})
	}
}
