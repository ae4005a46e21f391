package file

import (
	"fmt"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

const (
	limitsWant = `limits such as 3/6s, or a list of them`
	limitWant  = `a limit such as 3/6s`

	formOfALimit = "a limit is a quota, a slash and a window, as in 3/6s or 100/2h; an algorithm, burst=, precision=, aligned and name= may follow"
)

// limits reads text such as "10/s, 100/m", one limit of MuleSoft, or a list of either.
func (r *reader) limits(v value) ([]core.Limit, bool) {
	before := len(r.errs)
	var all []core.Limit
	for _, item := range r.items(v, core.MaxLimits, limitsWant, true) {
		if !isMapping(item) {
			all = append(all, r.limitText(item)...)
		} else if l, ok := r.muleSoft(item); ok {
			all = append(all, l)
		}
	}
	return all, len(r.errs) == before
}

// limitText reads limits that are written as text.
func (r *reader) limitText(v value) []core.Limit {
	text, ok := r.text(v, limitWant)
	if !ok {
		return nil
	}
	var all []core.Limit
	for item := range strings.SplitSeq(text, ",") {
		limits, err := core.ParseLimits(item)
		if err != nil {
			r.bad(v, words.Reason(err), formOfALimit)
			continue
		}
		all = append(all, limits...)
	}
	return all
}

// muleSoft reads a limit as MuleSoft writes it, whose windows begin with the first
// request of a key.
func (r *reader) muleSoft(v value) (core.Limit, bool) {
	l := core.Limit{Algorithm: core.FixedWindow}
	m, _ := r.fields(v, limitWant,
		field{"maximumRequests", into(&l.Quota, whole[int64](r, 0, core.MaxQuota))},
		field{"timePeriodInMilliseconds", func(v value) {
			ms, _ := whole(r, 1, int64(core.MaxWindow/time.Millisecond))(v)
			l.Window = time.Duration(ms) * time.Millisecond
		}},
	)
	m.requires("a mapping is a limit as MuleSoft writes it; others are text, such as 100/h", "maximumRequests", "timePeriodInMilliseconds")
	return l, m.fine()
}

// Tier is the limits of one tier.
type Tier struct {
	at        value
	Name      string
	Unlimited bool
	Limits    []core.Limit
}

// DefaultTier is the tier of a request whose tier the policy does not name.
const DefaultTier = "default"

const unlimited = "unlimited"

// tiers reads a mapping of the names of tiers and their limits.
func (r *reader) tiers(v value) ([]Tier, bool) {
	pairs, ok := r.pairs(v, "a mapping of tiers and their limits")
	if !ok {
		return nil, false
	}
	before, found := len(r.errs), false
	var all []Tier
	for _, p := range pairs {
		t := Tier{at: value{p.key, p.value.path}, Name: p.name}
		r.name(t.at)
		found = found || p.name == DefaultTier
		if t.Unlimited = kindText(p.value.node) == unlimited; !t.Unlimited {
			t.Limits, _ = r.limits(p.value)
		}
		all = append(all, t)
	}
	if !found {
		r.bad(v, "the tier default is missing", "it is for requests of no tier that is named here; it may be unlimited")
	}
	return all, len(r.errs) == before
}

// Quotas are the quotas of one key by window, in place of those of the limits. nil:
// the key is unlimited.
type Quotas map[time.Duration]int64

// Of returns the quota of the key for a limit; found is false if the limit keeps its own.
func (q Quotas) Of(l *core.Limit) (quota int64, found bool) {
	if q == nil {
		return core.Unlimited, true
	}
	quota, found = q[l.Window]
	return quota, found
}

const quotaWant = "want quotas with the windows of the policy's limits such as 1000/m, 20000/d, or " + unlimited

// quotas reads the quotas of single keys of a policy whose limits have been read. A quota
// is for the limit with the same window.
func (r *reader) quotas(v value, p *Policy) {
	most := map[time.Duration]int64{} // the largest quota, by the windows of the limits
	for _, limits := range p.limitSets() {
		seen := map[time.Duration]bool{}
		for _, l := range limits {
			if seen[l.Window] {
				r.bad(v, "two limits have a window of "+l.Window.String(), "the window says which limit a quota is for: write the two limits as two policies")
				return
			}
			seen[l.Window] = true
			if l.Algorithm == core.SlidingLog {
				most[l.Window] = core.MaxLogQuota
			} else if most[l.Window] == 0 {
				most[l.Window] = core.MaxQuota
			}
		}
	}
	pairs, ok := r.pairs(v, "a mapping such as {ann: 1000/m}")
	if ok && len(pairs) == 0 {
		r.bad(v, "is empty", "want a mapping such as {ann: 1000/m}")
	}
	p.Quotas = map[string]Quotas{}
	for _, pair := range pairs {
		pair.value.path = v.path // a key may be a secret, and stands in no message
		p.Quotas[pair.name] = r.quotasOf(pair.value, most)
	}
}

// quotasOf reads the quotas of one key.
func (r *reader) quotasOf(v value, most map[time.Duration]int64) Quotas {
	text, ok := r.text(v, "quotas such as 3/6s or 1000/m, 20000/d")
	if !ok || text == unlimited {
		return nil
	}
	q := Quotas{}
	for item := range strings.SplitSeq(text, ",") {
		limits, err := core.ParseLimits(item)
		if err != nil {
			r.bad(v, fmt.Sprintf("%q: %s", words.Shorten(item), words.Reason(err)), quotaWant)
			continue
		}
		l := limits[0]
		largest, known := most[l.Window]
		_, twice := q[l.Window]
		switch {
		case l != (core.Limit{Quota: l.Quota, Window: l.Window}) && l != core.PerMonth(l.Quota):
			r.bad(v, fmt.Sprintf("%q: says more than a quota and a window", words.Shorten(item)), "the algorithm, the burst, the zone and the name stand in limits")
		case !known:
			r.bad(v, "the policy has no limit with a window of "+l.Window.String(), quotaWant)
		case twice:
			r.bad(v, "the window "+l.Window.String()+" stands twice", "leave one out")
		case l.Quota > largest:
			r.bad(v, fmt.Sprintf("%d: is more than %d, the largest quota of a %s", l.Quota, largest, core.SlidingLog), "write a smaller quota, or choose another algorithm")
		}
		q[l.Window] = l.Quota
	}
	return q
}
