package adapter

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// SetCost says whether it has set a cost: it does not if no rule has a Cost.
func TestSetCost(t *testing.T) {
	rule := core.Rule{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(9)}}
	plain := core.Must(core.New(core.Config{Rules: []core.Rule{rule}}))
	rule.Cost = func(core.Request) (int64, error) { return 1, nil }
	weighs := core.Must(core.New(core.Config{Rules: []core.Rule{rule}}))
	r := floodgatetest.NewRequest("GET", "/")
	if d := PerIP(1, time.Minute, nil).Check(r); d.Limiter() != "per-ip" || d.Rule() != "ip" {
		t.Errorf("PerIP has the limiter %q and the rule %q", d.Limiter(), d.Rule())
	}
	var none *Exposed
	without := &Exposed{Decision: plain.Check(r)}
	with := &Exposed{Decision: weighs.Check(r)}
	if none.SetCost(5) || without.SetCost(5) || !with.SetCost(5) {
		t.Error("without a Cost, SetCost returns true, or with one, false")
	}
	if without.Outer = with; !without.SetCost(5) || !(&Exposed{Decision: with.Decision, Outer: &Exposed{Decision: plain.Check(r)}}).SetCost(5) {
		t.Error("SetCost returns false, although one of two limiters has a Cost")
	}
}

func TestOutcome(t *testing.T) {
	for _, row := range []struct {
		response           Response
		status             int
		canceled, panicked bool
	}{
		{Response{}, 200, false, false},
		{Response{Status: 404}, 404, false, false},
		{Response{Status: 200, Ended: true}, 499, true, false},
		{Response{Ended: true}, 499, true, false},
		{Response{Panicked: true}, 500, false, true},
		{Response{Status: 201, Panicked: true}, 201, false, true},
		{Response{Panicked: true, Ended: true}, 500, true, true},
		{Response{Status: 201, Panicked: true, Ended: true}, 201, true, true},
	} {
		o := row.response.Outcome()
		if o.Status != row.status || o.Canceled != row.canceled || o.Panicked != row.panicked {
			t.Errorf("%+v becomes %+v", row.response, o)
		}
	}
}
