package file

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// Tier is the limits of one tier.
type Tier struct {
	at        value
	Name      string
	Unlimited bool
	Limits    []core.Limit
}

// DefaultTier is the tier of requests of no tier that a rule names.
const DefaultTier = "default"

const unlimited = "unlimited"

// tiers is a mapping of the names of tiers and their limits.
func tiers() kind[[]Tier] {
	limits, tierName := limits(), name()
	look := shape{"a mapping of names of tiers to limits, as in `limits`, or to `unlimited`", func(d *definitions) object {
		return object{
			{"type", "object"}, {"required", []string{DefaultTier}}, {"maxProperties", maxRules}, {"propertyNames", tierName.schema(d)},
			{"additionalProperties", object{{"oneOf", []object{limits.schema(d), {{"const", unlimited}}}}}},
		}
	}, limits.sections}
	return kind[[]Tier]{look, func(r *reader, v value) ([]Tier, bool) {
		pairs, ok := r.pairs(v, "a mapping of tiers and their limits")
		if !ok {
			return nil, false
		}
		before, found := len(r.errs), false
		var all []Tier
		for _, p := range pairs {
			at := value{p.key, p.value.path}
			if _, ok := tierName.read(r, at); !ok {
				continue
			}
			t := Tier{at: at, Name: p.name}
			found = found || p.name == DefaultTier
			if opened, ok := r.open(p.value); ok && kindText(opened.node) == unlimited {
				t.Unlimited = true
			} else if ok {
				t.Limits, _ = limits.read(r, p.value)
			}
			all = append(all, t)
		}
		if !found {
			r.bad(v, "the tier default is missing", "it is for requests of no tier that is named here; it may be unlimited")
		}
		if len(all) > maxRules {
			r.bad(v, fmt.Sprintf("%d tiers: at most %d", len(all), maxRules), "")
		}
		return all, len(r.errs) == before
	}}
}
