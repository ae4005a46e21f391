package resilient_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// step is one of a history: an outage begins or ends, time passes, another
// instance resets a key, or an instance takes hits of it.
type step struct{ kind, key, n int }

// settled is when the hits of an outage have been charged: one and a half times
// Retry after the store has answered again.
const settled = 1500*time.Millisecond + time.Microsecond

const (
	toggle = iota
	pass
	resets
	takes
)

var steps = rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
	return step{rapid.SampledFrom([]int{toggle, pass, resets, takes, takes}).Draw(r, "kind"), rapid.IntRange(1, 2).Draw(r, "key"), rapid.IntRange(1, 6).Draw(r, "n")}
}), 40, 80)

// counter is the model of a key's counter.
type counter struct {
	used  int  // what has been admitted since the last Reset
	stale bool // the process counts hits from before a Reset
	loose bool // and an outage after that may have charged them again
}

// One instance takes hits, through outages; another one resets keys when the store
// has answered for as long as the package states. No more is admitted than the
// model has left. While the store answers it is just as much, unless the process
// did not hear of a Reset before an outage.
func TestOutagesAndResetsAgainstAModel(t *testing.T) {
	const quota = 6
	rapid.Check(t, func(r *rapid.T) {
		history, failures, two := steps.Draw(r, "history"), rapid.IntRange(1, 3).Draw(r, "failures"), rapid.Bool().Draw(r, "two limits")
		wrong := ""
		synctest.Test(t, func(t *testing.T) {
			limits := []core.Limit{fixed(quota, 24*time.Hour)}
			if two {
				limits = append(limits, fixed(100, 300*24*time.Hour))
			}
			all := instances(t, 2, resilient.Config{Failures: failures}, rule("user", limits...))
			other, self := all[0], all[1]
			counters, down, since := map[string]*counter{}, false, time.Now()
			for i, s := range history {
				hit := core.Hit{Rule: "user", Key: fmt.Sprint(s.key)}
				if counters[hit.Key] == nil {
					counters[hit.Key] = &counter{}
				}
				c := counters[hit.Key]
				switch s.kind {
				case toggle:
					down, since = !down, time.Now()
					if self.link.fail(nil); down {
						self.link.fail(errRefused)
					}
				case pass:
					time.Sleep(time.Duration(s.n) * 500 * time.Millisecond)
				case resets:
					if down {
						continue
					}
					time.Sleep(settled)
					other.reset(hit)
					*c = counter{stale: c.stale || c.used > 0}
				case takes:
					want := min(s.n, quota-c.used)
					exact := !down && time.Since(since) >= settled
					c.loose = c.loose || c.stale && !exact
					got := self.admitted(s.n, hit)
					if got > want || got < want && exact && !c.loose {
						wrong = fmt.Sprintf("step %d: key %s: %d of %d admitted after %d, want %d", i, hit.Key, got, s.n, c.used, want)
						return
					}
					c.used += got
				}
			}
		})
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}
