package core_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// A hit finds its rule by the name, however many rules there are, and none by a name that no rule has.
func TestHitsFindTheirRules(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 9, 40} {
		config := core.Config{}
		for i := range n {
			config.Rules = append(config.Rules, core.Rule{Name: fmt.Sprint("rule", i), Limits: []core.Limit{core.PerHour(int64(i) + 1)}})
		}
		l := newLimiter(t, config, newClock())
		for _, name := range []string{"", "rule", "rule40", "rule00"} {
			if d, err := l.Take(t.Context(), 1, core.Hit{Rule: name, Key: "k"}); !errors.Is(err, core.ErrUnknownRule) || d.Allowed {
				t.Errorf("%d rules, %q: %v, %v", n, name, d, err)
			}
		}
		for i := range n {
			d, err := l.Take(t.Context(), 1, core.Hit{Rule: fmt.Sprint("rule", i), Key: "k"})
			if err != nil || d.Limit().Quota != int64(i)+1 || d.Remaining != int64(i) {
				t.Errorf("%d rules, rule%d: %v, %v", n, i, d, err)
			}
		}
	}
}
