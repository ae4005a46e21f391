package core_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// Requests take slots and give them back, in the first round of a key that the Memory does not
// know, and in later ones of a key that it knows.
func TestRequestsTakeSlots(t *testing.T) {
	free := func(r core.Request, l core.Limit) (int64, error) { return int64(len(r.Method())) + l.Quota, nil }
	for _, rule := range []core.Rule{
		{Name: "r", Key: static("k"), Limits: []core.Limit{core.InFlight(2)}},
		{Name: "r", Key: static("k"), Limits: []core.Limit{core.InFlight(2)}, Quota: free},
	} {
		l := newLimiter(t, core.Config{Rules: []core.Rule{rule}}, nil)
		for round := range 4 {
			check := func(want bool, method string) core.Decision {
				t.Helper()
				d := l.Check(&request{method: method})
				if d.Allowed != want || d.Key() != "k" || d.Rule() != "r" || !want && d.Reason != core.ReasonOverLimit {
					t.Errorf("round %d: %v of the key %q, want allowed %t", round, d, d.Key(), want)
				}
				return d
			}
			a, b := check(true, ""), check(true, "")
			check(false, "")
			extra := rule.Quota != nil
			c := check(extra, "x") // has a quota of 3, if the rule asks for it
			l.Settle(&request{}, c, core.Outcome{Status: 200})
			release, held := a.Hold()
			l.Settle(&request{}, a, core.Outcome{Status: 200})
			if check(false, ""); !held {
				t.Errorf("round %d: nothing is held", round)
			}
			release()
			d := check(true, "")
			l.Settle(&request{}, b, core.Outcome{Status: 200})
			l.Settle(&request{}, d, core.Outcome{Status: 200})
			if got := left(t, l, "r", "k"); got != 2 {
				t.Errorf("round %d: %d slots left, want 2", round, got)
			}
		}
	}
}
