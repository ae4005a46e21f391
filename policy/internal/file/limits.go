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

// algorithms are those that limits may name.
var algorithms = []core.Algorithm{core.SlidingWindow, core.FixedWindow, core.BucketedWindow, core.SlidingLog, core.TokenBucket}

const (
	limitsWant = `limits such as 3/6s, or a list of them`
	limitWant  = `a limit such as 3/6s, or quota and window`

	formOfALimit  = "a limit is a quota, a slash and a window, as in 3/6s or 100/2h; an algorithm, burst=, precision=, aligned and name= may follow"
	precisionHint = "bucketed_window needs the length of its buckets: write bucketed_window precision=1s, or the field precision: 1s"
	deniesAllHint = "write 1 or more; to try a policy without denying, write dry-run: true"
)

// limits reads text such as "10/s, 100/m", one limit written with its fields, or a
// list of either.
func (r *reader) limits(v value) ([]core.Limit, bool) {
	before := len(r.errs)
	var all []core.Limit
	for _, item := range r.items(v, core.MaxLimits, limitsWant, true) {
		opened, ok := r.open(item)
		if ok && isMapping(opened) {
			if l, ok := r.limit(opened); ok {
				all = append(all, l)
			}
		} else if ok {
			all = append(all, r.limitText(opened)...)
		}
	}
	r.sameCounter(v, all)
	return all, len(r.errs) == before
}

// sameCounter notes limits that would count the same.
func (r *reader) sameCounter(v value, limits []core.Limit) {
	seen := map[string]core.Limit{}
	for _, l := range limits {
		counter := fmt.Sprint(l.Algorithm, l.Window, l.Precision, l.Aligned, l.Zone == nil, l.Zone)
		if other, twice := seen[counter]; twice {
			r.bad(v, fmt.Sprintf("%v and %v count the same: only the smaller can matter", other, l), "leave one out")
		}
		seen[counter] = l
	}
}

// limitText reads limits that are written as text.
func (r *reader) limitText(v value) []core.Limit {
	text, ok := r.text(v, limitWant)
	if !ok {
		return nil
	}
	var all []core.Limit
	offset := quoted(v)
	for item := range strings.SplitSeq(text, ",") {
		place := offset + len(item) - len(strings.TrimLeft(item, " "))
		offset += len(item) + 1
		limits, err := core.ParseLimits(item)
		if err != nil {
			problem := words.Reason(err)
			r.badAt(v, 0, place, problem, limitHint(item, problem))
			continue
		}
		for _, l := range limits {
			if l.Quota == 0 {
				r.doubt(v, fmt.Sprintf("%q: denies all requests", strings.TrimSpace(item)), deniesAllHint)
			}
		}
		all = append(all, limits...)
	}
	if len(all) > core.MaxLimits {
		r.bad(v, fmt.Sprintf("%d limits: at most %d", len(all), core.MaxLimits), "")
	}
	return all
}

// limitHint explains limits text that has an error; item is the text of one limit.
func limitHint(item, problem string) string {
	switch {
	case strings.HasPrefix(problem, "Precision: 0s"):
		return precisionHint
	case strings.HasPrefix(problem, "Zone: ") && strings.Contains(problem, "is not a day"):
		return "a time zone stands behind the window day, week or month"
	case strings.HasPrefix(problem, "zone: "), problem[0] >= 'A' && problem[0] <= 'Z':
		return "" // the problem says what to write
	}
	var names []string
	for _, a := range algorithms {
		names = append(names, a.String())
	}
	for _, word := range strings.Fields(item) {
		if hint := words.Nearest(strings.ReplaceAll(word, "-", "_"), names); hint != "" && !slices.Contains(names, word) {
			return hint
		}
	}
	return formOfALimit
}

// month stands for a month until the limit has been read: 31 days may be written
// as they are.
const month = -core.Month

// limit reads a limit that is written with its fields.
func (r *reader) limit(v value) (core.Limit, bool) {
	var l core.Limit
	var names []word[core.Algorithm]
	for _, a := range algorithms {
		names = append(names, word[core.Algorithm]{a.String(), a})
	}
	quota := whole[int64](r, 0, core.MaxQuota)
	m, ok := r.fields(v, limitWant,
		field{"quota", into(&l.Quota, quota)},
		field{"window", func(v value) {
			d, _ := r.length(v, "a window such as 6s, 500ms, 2h or month", true)
			if l.Window = d; d == month && l.Zone == nil {
				l.Zone = time.UTC
			}
		}},
		field{"zone", into(&l.Zone, r.zone)},
		field{"maximumRequests", into(&l.Quota, quota)}, // as MuleSoft writes it, and the next one
		field{"timePeriodInMilliseconds", func(v value) {
			ms, _ := whole(r, 1, int64(core.MaxWindow/time.Millisecond))(v)
			l.Window = time.Duration(ms) * time.Millisecond
		}},
		field{"algorithm", into(&l.Algorithm, choice(r, names...))},
		field{"burst", into(&l.Burst, whole[int64](r, 1, core.MaxQuota))},
		field{"precision", into(&l.Precision, r.duration("a length of time such as 1s"))},
		field{"aligned", into(&l.Aligned, r.boolean)},
		field{"name", into(&l.Name, r.name)},
	)
	if !ok {
		return l, false
	}
	quotaGiven, window, requests, period := m.has("quota"), m.has("window"), m.has("maximumRequests"), m.has("timePeriodInMilliseconds")
	switch {
	case (quotaGiven || window) && (requests || period):
		r.bad(v, "has both spellings of a limit", "write quota and window, or maximumRequests and timePeriodInMilliseconds")
	case requests != period:
		r.bad(v, "maximumRequests and timePeriodInMilliseconds are both needed", "")
	case !requests && (!quotaGiven || !window):
		r.bad(v, "quota and window are both needed", "")
	}
	if !m.fine() {
		return l, false
	}
	r.endLimit(m, &l)
	return l, m.fine()
}

// endLimit checks what a limit's fields are together.
func (r *reader) endLimit(m mapping, l *core.Limit) {
	if (l.Zone != nil || m.has("maximumRequests")) && !m.has("algorithm") {
		l.Algorithm = core.FixedWindow
	}
	switch {
	case l.Window == month:
		l.Window = core.Month
	case l.Window == core.Month && l.Zone != nil:
		r.bad(m.value, "a window of 31 days is not a month", "write window: month")
		return
	}
	if err := l.Validate(); err != nil {
		hint := ""
		if l.Algorithm == core.BucketedWindow && l.Precision == 0 {
			hint = precisionHint
		}
		if l.Zone != nil && l.Algorithm == core.FixedWindow && !l.Aligned {
			hint = "with zone, write window: day, week or month"
		}
		r.bad(m.value, words.Reason(err), hint)
	}
	for _, name := range []string{"quota", "maximumRequests"} {
		if m.has(name) && l.Quota == 0 {
			r.doubt(m.given[name], "0: denies all requests", deniesAllHint)
		}
	}
}

// zone reads the name of a time zone.
func (r *reader) zone(v value) (*time.Location, bool) {
	const want = "a time zone such as Europe/Berlin or UTC"
	text, ok := r.text(v, want)
	if !ok {
		return nil, false
	}
	problem := fmt.Sprintf("%q: want %s", words.Shown(text), want)
	if !strings.ContainsAny(text, " ,\t\n") {
		limits, err := core.ParseLimits("1/day " + text)
		if err == nil && limits[0].Zone != nil {
			return limits[0].Zone, true
		}
		if err != nil && text[0] >= 'A' && text[0] <= 'Z' {
			problem = words.Reason(err)
		}
	}
	r.bad(v, problem, "")
	return nil, false
}

// Tier is the limits of one tier.
type Tier struct {
	at        value
	Name      string
	Unlimited bool
	Limits    []core.Limit
}

// DefaultTier is the tier of requests of no tier that a policy names.
const DefaultTier = "default"

const (
	unlimited = "unlimited"
	maxTiers  = 32 // of a policy
)

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
		if _, ok := r.name(t.at); !ok {
			continue
		}
		found = found || p.name == DefaultTier
		if opened, ok := r.open(p.value); ok && kindText(opened.node) == unlimited {
			t.Unlimited = true
		} else if ok {
			t.Limits, _ = r.limits(p.value)
		}
		all = append(all, t)
	}
	if !found {
		r.bad(v, "the tier default is missing", "it is for requests of no tier that is named here; it may be unlimited")
	}
	if len(all) > maxTiers {
		r.bad(v, fmt.Sprintf("%d tiers: at most %d", len(all), maxTiers), "")
	}
	return all, len(r.errs) == before
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
	quotaWant = "want quotas with the windows of the policy's limits such as 1000/m, 20000/d, a number if it has one limit, or " + unlimited
	maxOwn    = 10_000 // keys of a policy
)

// quotas reads a mapping of keys and their quotas.
func (r *reader) quotas(v value) (map[string]*Quotas, bool) {
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
}

// quotasOf reads the quotas of one key.
func (r *reader) quotasOf(v value) *Quotas {
	opened, ok := r.open(v)
	if !ok {
		return nil
	}
	if isInteger(opened) {
		n, _ := whole[int64](r, 0, core.MaxQuota)(opened)
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

// endQuotas checks the quotas of single keys against the policy's limits: the window
// says which limit a quota is for.
func (r *reader) endQuotas(p *Policy, at value) {
	if p.Quotas == nil {
		return
	}
	sets := [][]core.Limit{p.Limits}
	for _, t := range p.Tiers {
		sets = append(sets, t.Limits)
	}
	windows, several := []time.Duration{}, false
	for _, limits := range sets {
		seen := map[time.Duration]bool{}
		for _, l := range limits {
			if seen[l.Window] {
				r.bad(at, "two limits have a window of "+words.Duration(l.Window), "the window says which limit a quota is for: write the two limits as two policies")
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
	for _, q := range slices.SortedFunc(maps.Values(p.Quotas), byPlace) {
		if q.windows == nil && q.all != core.Unlimited && several {
			r.bad(q.at, strconv.FormatInt(q.all, 10)+": the policy has several limits", quotaWant)
		}
		if q.all == 0 && q.windows == nil || slices.Contains(slices.Collect(maps.Values(q.windows)), 0) {
			r.doubt(q.at, "0: denies all requests of the key", "write 1 or more; leave the key out for the limit's own quota")
		}
		for window := range q.windows {
			if !slices.Contains(windows, window) {
				r.bad(q.at, "the policy has no limit with a window of "+words.Duration(window), quotaWant)
			}
		}
		for _, l := range slices.Concat(sets...) {
			if own, _ := q.Of(&l); l.Algorithm == core.SlidingLog && own > core.MaxLogQuota && own != core.Unlimited {
				r.bad(q.at, fmt.Sprintf("%d: is more than %d, the largest quota of a %s", own, core.MaxLogQuota, core.SlidingLog), "write a smaller quota, or choose another algorithm")
			}
		}
	}
}
