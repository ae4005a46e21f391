package policy

import (
	_ "embed" // the schema
	"fmt"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// Explanation describes the effect of each policy of a file on a request, in
// the order of the file.
type Explanation []PolicyExplanation

// PolicyExplanation describes the effect of one policy on a request.
type PolicyExplanation struct {
	Policy string
	// Applies reports whether the policy applies to the request; Why is the
	// reason.
	Applies bool
	Why     string
	// DryRun reports whether the policy has dry-run: true and so denies nothing. Shared
	// reports whether it counts in the file's store.
	DryRun, Shared bool
	// Wait is the longest time that a request waits for its turn if the policy would
	// deny it. 0: no request waits. A dry run makes no request wait.
	Wait time.Duration
	// Denied reports whether the client's address is denied: the list deny has
	// it, or the list only does not.
	Denied bool
	// Cost is the number of hits that the request costs.
	Cost int64
	// Err is the reason why the request is denied with 400; nil if it is not.
	Err error
	// Tier is the tier of the request; "" if the policy has no tiers.
	Tier string
	// Key is the key of the counter; all requests without a key share the key "".
	Key string
	// Limits are the limits that apply to the key, with the quotas of the request. There
	// are none if the tier is unlimited.
	Limits []core.Limit
	// QuotasFrom says what has set the quotas if they are not those in limits: the field
	// quotas or the program.
	QuotasFrom string
	// InFlight is the most requests of the key that run at a time; nil: any number.
	InFlight *int64
}

// Explain returns what the policies do with a request. It asks no store and charges
// nothing.
func (s *Set) Explain(r core.Request) Explanation {
	q := &request{Request: r}
	var all Explanation
	for _, p := range s.current.Load().policies {
		e := PolicyExplanation{Policy: p.Name, DryRun: p.DryRun, Shared: p.Shared, Cost: 1}
		if !p.DryRun {
			e.Wait = p.Wait
		}
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
func (p *enforcedPolicy) explain(q *request, e *PolicyExplanation) error {
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
		quota, from, err := p.quotaOf(q, rule, l)
		if err != nil {
			return err
		}
		if from == "" {
			continue
		}
		if l.Burst > 0 && l.Quota > 0 && quota != core.Unlimited {
			l.Burst = max(1, l.Burst*quota/l.Quota) // below 2^62
		}
		l.Quota, e.QuotasFrom = quota, from
	}
	e.Key, e.Limits = string(key), limits
	return nil
}

// passes notes that the limits are not for the request. Lists of addresses are for all.
func (e *PolicyExplanation) passes(why string) {
	if !e.Denied {
		e.Applies, e.Why = false, why
	}
}

// Words describes a limit in words, also one whose quota is core.Unlimited: "at most 3 in 6s; a window begins with the
// first request of a key".
func Words(l core.Limit) string {
	per := fmt.Sprintf("at most %d in %s; ", l.Quota, words.Duration(l.Window))
	switch {
	case l.Quota == core.Unlimited:
		if l.Zone != nil {
			return "without a limit, counted in " + calendar(l)
		}
		return "without a limit, counted in " + words.Duration(l.Window)
	case l.Quota == 0:
		return "none at all"
	case l.Zone != nil:
		return fmt.Sprintf("at most %d in %s", l.Quota, calendar(l))
	case l.Algorithm == core.FixedWindow && l.Aligned:
		return per + "windows begin at multiples of their length"
	case l.Algorithm == core.FixedWindow:
		return per + "a window begins with the first request of a key"
	case l.Algorithm == core.SlidingWindow:
		return per + "the window before counts in part"
	case l.Algorithm == core.BucketedWindow:
		return per + "never more, counted in steps of " + words.Duration(l.Precision)
	case l.Algorithm == core.SlidingLog:
		return per + "never more"
	}
	burst := l.Burst
	if burst == 0 {
		burst = l.Quota
	}
	return fmt.Sprintf("%d at once, and one more every %s", burst, words.Duration(l.Window/time.Duration(l.Quota)))
}

// calendar describes the windows of a limit with a time zone.
func calendar(l core.Limit) string {
	unit := map[time.Duration]string{24 * time.Hour: "day", 7 * 24 * time.Hour: "week, from Monday,", core.Month: "month"}[l.Window]
	return fmt.Sprintf("each %s of the calendar in %v", unit, l.Zone)
}

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of policy files, for editors that complete
// and check them. It checks each field and the type of its value; [Parse] finds every
// mistake.
func Schema() []byte { return slices.Clone(schema) }
