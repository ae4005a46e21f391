package fiber3limit_test

import (
	"fmt"
	"testing"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestANilOptionIsNamed(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(1)}}}}))
	defer func() {
		const want = "fiber3limit: an option is nil: write one such as fiber3limit.OnDenied(f), or none"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("panics with %s, want %s", got, want)
		}
	}()
	fiber3limit.Middleware(l, nil)
}
