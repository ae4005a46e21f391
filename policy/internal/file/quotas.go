package file

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
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

// Quotas are the quotas of one key, in place of those of the limits.
type Quotas struct {
	at      value
	all     int64                   // for every limit, if windows is nil
	windows map[time.Duration]int64 // for the limits with these windows
}

// Of returns the quota for a limit; false if it keeps its own.
func (q *Quotas) Of(l *core.Limit) (quota int64, found bool) {
	if q.windows == nil {
		return q.all, true
	}
	quota, found = q.windows[l.Window]
	return quota, found
}

const (
	quotaWant = "want quotas with the windows of the rule's limits such as 1000/m, 20000/d, a number if the rule has one limit, or " + unlimited
	maxOwn    = 10_000 // keys of a rule
)

// quotas is a mapping of keys and their quotas.
func quotas() kind[map[string]*Quotas] {
	look := shape{"a mapping of keys to text such as `1000/m, 20000/d`, a number or `unlimited`", func(*definitions) object {
		one := []object{{{"type", "string"}, {"minLength", 1}}, {{"type", "integer"}, {"minimum", 0}, {"maximum", core.MaxQuota}}}
		return object{{"type", "object"}, {"minProperties", 1}, {"maxProperties", maxOwn}, {"additionalProperties", object{{"oneOf", one}}}}
	}, nil}
	return kind[map[string]*Quotas]{look, func(r *reader, v value) (map[string]*Quotas, bool) {
		pairs, ok := r.pairs(v, "a mapping such as {ann: 1000/m}")
		if !ok {
			return nil, false
		}
		before, all := len(r.errs), map[string]*Quotas{}
		if len(pairs) == 0 || len(pairs) > maxOwn {
			r.bad(v, fmt.Sprintf("%d keys: want 1 to %d", len(pairs), maxOwn), "for more, the program can give policy.WithQuota")
		}
		for _, p := range pairs {
			p.value.path = v.path // a key may be a secret, and stands in no message
			if q := r.quotasOf(p.value); q != nil {
				all[p.name] = q
			}
		}
		return all, len(r.errs) == before
	}}
}

// quotasOf reads the quotas of one key.
func (r *reader) quotasOf(v value) *Quotas {
	opened, ok := r.open(v)
	if !ok {
		return nil
	}
	if isInteger(opened) {
		n, _ := r.integer(opened, 0, core.MaxQuota)
		return &Quotas{at: v, all: n}
	}
	text, ok := r.text(opened, "quotas such as 1000/m, 20000/d")
	if !ok {
		return nil
	}
	if text == unlimited {
		return &Quotas{at: v, all: core.Unlimited}
	}
	q := &Quotas{at: v, windows: map[time.Duration]int64{}}
	for item := range strings.SplitSeq(text, ",") {
		limits, err := core.ParseLimits(item)
		if err != nil {
			r.bad(v, fmt.Sprintf("%q: %s", words.Shorten(item), words.Reason(err)), quotaWant)
			return q
		}
		l := limits[0]
		if month := core.PerMonth(l.Quota); l != (core.Limit{Quota: l.Quota, Window: l.Window}) && l != month {
			r.bad(v, fmt.Sprintf("%q: says more than a quota and a window", words.Shorten(item)), "the algorithm, the burst, the zone and the name stand in limits")
			return q
		}
		if _, twice := q.windows[l.Window]; twice {
			r.bad(v, "the window "+words.Duration(l.Window)+" stands twice", "leave one out")
		}
		q.windows[l.Window] = l.Quota
	}
	return q
}

// sets returns the rule's limits, or those of each tier that has some.
func (rule *Rule) sets() [][]core.Limit {
	if len(rule.Tiers) == 0 {
		return [][]core.Limit{rule.Limits}
	}
	var sets [][]core.Limit
	for _, t := range rule.Tiers {
		if !t.Unlimited {
			sets = append(sets, t.Limits)
		}
	}
	return sets
}

// endQuotas checks the quotas of single keys against the rule's limits: the window
// says which limit a quota is for.
func (r *reader) endQuotas(rule *Rule, at value) {
	if rule.Quotas == nil {
		return
	}
	windows, several := []time.Duration{}, false
	for _, limits := range rule.sets() {
		seen := map[time.Duration]bool{}
		for _, l := range limits {
			if seen[l.Window] {
				r.bad(at, "two limits have a window of "+words.Duration(l.Window), "the window says which limit a quota is for: write the two limits as two rules")
				return
			}
			seen[l.Window] = true
			windows = append(windows, l.Window)
		}
		several = several || len(limits) > 1
	}
	byPlace := func(a, b *Quotas) int {
		return cmp.Or(cmp.Compare(a.at.place().Line, b.at.place().Line), cmp.Compare(a.at.place().Column, b.at.place().Column))
	}
	for _, q := range slices.SortedFunc(maps.Values(rule.Quotas), byPlace) {
		if q.windows == nil && q.all != core.Unlimited && several {
			r.bad(q.at, strconv.FormatInt(q.all, 10)+": the rule has several limits", quotaWant)
		}
		if q.all == 0 && q.windows == nil || slices.Contains(slices.Collect(maps.Values(q.windows)), 0) {
			r.doubt(q.at, "0: denies all requests of the key", "write 1 or more; leave the key out for the limit's own quota")
		}
		for window := range q.windows {
			if !slices.Contains(windows, window) {
				r.bad(q.at, "the rule has no limit with a window of "+words.Duration(window), quotaWant)
			}
		}
		for _, l := range slices.Concat(rule.sets()...) {
			if own, _ := q.Of(&l); l.Algorithm == core.SlidingLog && own > core.MaxLogQuota && own != core.Unlimited {
				r.bad(q.at, fmt.Sprintf("%d: is more than %d, the largest quota of a %s", own, core.MaxLogQuota, core.SlidingLog), "write a smaller quota, or choose another algorithm")
			}
		}
	}
}
