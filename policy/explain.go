package policy

import (
	_ "embed" // the schema
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// Explanation describes the effect of one policy on a request.
type Explanation struct {
	Policy string
	// Applies reports whether the policy applies to the request; Why is the reason.
	Applies bool
	Why     string
	// Denied reports whether the client's address is denied: the field "deny" lists it, or the
	// field "only" does not.
	Denied bool
	// Cost is the number of hits that the request costs.
	Cost int64
	// Err is why the request is denied with 400; nil if it is not.
	Err error
	// Tier is the tier of the request; "" if the policy has no tiers.
	Tier string
	// Key is the key of the counter; requests without a key share the key "".
	Key string
	// Limits are the limits that apply to the key, with the quotas of the request. There are none
	// if the tier is unlimited.
	Limits []core.Limit
	// InFlight is the most requests of the key that run at a time; nil: any number.
	InFlight *int64
}

// Explain returns what each policy does with a request, in the order of [Set.Policies]. It asks no
// store and charges nothing.
func (s *Set) Explain(r core.Request) []Explanation {
	q := &request{Request: r}
	var all []Explanation
	for _, p := range s.current.Load().policies {
		e := Explanation{Policy: p.Name}
		verdict := p.verdict(q)
		e.Applies, e.Why = verdict == matches, verdict.why(&p.Match)
		if e.Applies {
			e.Denied = p.denies(q)
			e.Cost, e.Err = p.costOf(q)
			if err := p.explain(q, &e); err != nil && e.Err == nil {
				e.Err = err
			}
		}
		all = append(all, e)
	}
	return all
}

// explain adds the counter of a request and its limits.
func (p *enforcedPolicy) explain(q *request, e *Explanation) error {
	rule, limits := p.Name, p.Limits
	e.InFlight = p.InFlight
	if len(p.Tiers) > 0 {
		name, err := p.tierOf(q)
		if err != nil {
			return err
		}
		e.Tier, rule = name, p.TierRule(name)
		limits = p.Tiers[slices.IndexFunc(p.Tiers, func(t file.Tier) bool { return t.Name == name })].Limits
		if len(limits) == 0 && p.InFlight == nil {
			e.passes("the tier is unlimited")
			return nil
		}
	}
	key, err := p.identify(nil, q)
	if err == core.SkipRule { //nolint:errorlint // identify returns it as it is
		e.passes("the request has no " + words.Shorten(p.Policy.Key.String()))
		return nil
	}
	if err != nil {
		return err
	}
	limits = slices.Clone(limits)
	for i := range limits {
		l := &limits[i]
		quota, err := p.quotaOf(q, rule, *l)
		if err != nil {
			return err
		}
		if l.Burst > 0 && l.Quota > 0 && quota != core.Unlimited {
			l.Burst = max(1, l.Burst*quota/l.Quota) // below 2^62
		}
		l.Quota = quota
	}
	e.Key, e.Limits = string(key), limits
	return nil
}

// passes notes that the limits are not for the request. Lists of addresses are for all.
func (e *Explanation) passes(why string) {
	if !e.Denied {
		e.Applies, e.Why = false, why
	}
}

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of policy files, for editors that complete and check
// them. It checks each field and the type of its value; [Parse] finds every mistake.
func Schema() []byte { return slices.Clone(schema) }
