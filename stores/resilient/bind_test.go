package resilient_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A limiter may be made in the middle of an outage, while the hits of another limiter wait
// to be charged in the background.
func TestLimitersAreMadeInTheMiddleOfAnOutage(t *testing.T) {
	f := newFlaky(t, nil)
	s := newStore(t, f, resilient.Config{Failures: 1, Retry: time.Millisecond})
	first := newLimiter(t, s, 5)
	f.fail(errGone)
	if d, err := take(first); err != nil || !d.Degraded {
		t.Fatalf("in the outage: %+v, %v", d, err)
	}
	// Many rules make a Bind long: a tick of the background falls into some of them.
	rules := make([]core.StoreRule, 64)
	for i := range rules {
		rules[i] = core.StoreRule{Name: fmt.Sprint(i), Limits: []core.Limit{core.PerHour(5)}}
	}
	end := time.Now().Add(100 * time.Millisecond)
	for i := 0; time.Now().Before(end); i++ {
		if _, err := s.Bind(fmt.Sprint("later ", i), rules); err != nil {
			t.Fatal(err)
		}
	}
}
