package storetest

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
)

// reconfigure changes the quotas of the rules, but not of those whose burst would be
// another part of the quota: what is owed at the old quota is reckoned with the new part.
func (p *play) reconfigure() {
	p.rules = slices.Clone(p.rules) // the store keeps what it was given
	for i := range p.rules {
		rule := &p.rules[i]
		rule.Limits = slices.Clone(rule.Limits)
		for j := range rule.Limits {
			if l := &rule.Limits[j]; l.Lockout == (core.Lockout{}) && l.Burst == 0 {
				l.Quota = rapid.Int64Range(0, 7).Draw(p.r, "new quota")
			}
		}
	}
	bound, err := p.bound.Reopen(p.rules)
	if err != nil {
		p.r.Fatalf("Reopen: %v", err)
	}
	p.bound, p.counter.rules, p.taken = bound, p.rules, nil
	for name, limits := range p.states {
		var rule int
		_, _ = fmt.Sscan(name, &rule)
		for j := range limits {
			limits[j].Limit = p.rules[rule].Limits[j]
		}
	}
}
