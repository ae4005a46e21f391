package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// algorithms are the names that limits may give, the default first.
var algorithms = []string{
	core.FixedWindow.String(), core.SlidingWindow.String(), core.BucketedWindow.String(), core.SlidingLog.String(), core.TokenBucket.String(),
}

const (
	limitsWant = `limits such as 3/6s, or a list of them`
	limitWant  = `a limit such as 3/6s, or quota and window`
)

// limits reads the limits of a rule: text such as "10/s, 100/m", one limit
// written with its fields, or a list of either.
func (r *reader) limits(v value) []core.Limit {
	opened, ok := r.open(v)
	if !ok {
		return nil
	}
	if isList(opened) {
		var all []core.Limit
		for _, item := range r.list(opened, core.MaxLimits, limitsWant) {
			all = append(all, r.limit(item)...)
		}
		r.sameCounter(v, all)
		return all
	}
	all := r.limit(v)
	r.sameCounter(v, all)
	return all
}

// sameCounter notes limits that would count the same.
func (r *reader) sameCounter(v value, limits []core.Limit) {
	type counter struct {
		algorithm         core.Algorithm
		window, precision time.Duration
		aligned           bool
	}
	seen := map[counter]core.Limit{}
	for _, l := range limits {
		c := counter{l.Algorithm, l.Window, l.Precision, l.Aligned}
		if other, twice := seen[c]; twice {
			r.bad(v, fmt.Sprintf("%v and %v count the same: only the smaller can matter", other, l), "leave one out")
		}
		seen[c] = l
	}
}

// limit reads one entry of limits: text may have several.
func (r *reader) limit(v value) []core.Limit {
	opened, ok := r.open(v)
	if !ok {
		return nil
	}
	if isMapping(opened) {
		if l, ok := r.limitFields(opened); ok {
			return []core.Limit{l}
		}
		return nil
	}
	text, ok := r.text(opened, limitWant)
	if !ok {
		return nil
	}
	var all []core.Limit
	offset := quoted(opened)
	for item := range strings.SplitSeq(text, ",") {
		place := offset + len(item) - len(strings.TrimLeft(item, " "))
		offset += len(item) + 1
		if !slices.ContainsFunc(strings.Fields(item), func(w string) bool { return slices.Contains(algorithms, w) }) {
			item += " " + algorithms[0]
		}
		limits, err := core.Limits(item)
		if err != nil {
			r.badAt(opened, 0, place, reason(err), limitHint(err))
			continue
		}
		all = append(all, limits...)
	}
	if len(all) > core.MaxLimits {
		r.bad(v, fmt.Sprintf("%d limits: at most %d", len(all), core.MaxLimits), "")
	}
	return all
}

// limitHint explains limits text to who has written what is none.
func limitHint(err error) string {
	if problem := reason(err); problem[0] >= 'A' && problem[0] <= 'Z' {
		return "" // a field of a limit that has been understood
	}
	return "a limit is a quota, a slash and a window, as in 3/6s or 100/2h; behind it an algorithm, burst=, precision=, aligned and name= may stand"
}

// reason is what an error of package core says, without what stands in the
// place anyway.
func reason(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if _, rest, found := strings.Cut(line, ", item 1: "); found {
			line = rest
		}
		lines = append(lines, strings.TrimPrefix(line, core.ErrConfig.Error()+": "))
	}
	return strings.Join(lines, "; ")
}

// limitFields reads a limit that is written with its fields.
func (r *reader) limitFields(v value) (core.Limit, bool) {
	l := core.Limit{Algorithm: core.FixedWindow}
	before := len(r.errs)
	window := func(to *time.Duration, want string) func(v value) {
		return func(v value) {
			if d, ok := r.window(v, want); ok {
				*to = d
			}
		}
	}
	count := func(to *int64) func(v value) {
		return func(v value) { *to, _ = r.integer(v, 0, core.MaxQuota) }
	}
	given := r.mapping(v, limitWant,
		field{"quota", count(&l.Quota)},
		field{"window", window(&l.Window, "a window such as 6s, 500ms or 2h")},
		field{"maximumRequests", count(&l.Quota)},
		field{"timePeriodInMilliseconds", func(v value) {
			if ms, ok := r.integer(v, 1, int64(core.MaxWindow/time.Millisecond)); ok {
				l.Window = time.Duration(ms) * time.Millisecond
			}
		}},
		field{"algorithm", func(v value) {
			if name, ok := r.choice(v, algorithms...); ok {
				for a := range core.Algorithm(len(algorithms)) {
					if a.String() == name {
						l.Algorithm = a
					}
				}
			}
		}},
		field{"burst", func(v value) { l.Burst, _ = r.integer(v, 1, core.MaxQuota) }},
		field{"precision", window(&l.Precision, "a length of time such as 1s")},
		field{"aligned", func(v value) { l.Aligned = r.boolean(v) }},
		field{"name", func(v value) { l.Name, _ = r.name(v) }},
	)
	own, ownWindow := has(given, "quota"), has(given, "window")
	other, otherWindow := has(given, "maximumRequests"), has(given, "timePeriodInMilliseconds")
	switch {
	case given == nil:
	case (own || ownWindow) && (other || otherWindow):
		r.bad(v, "has both spellings of a limit", "write quota and window, or maximumRequests and timePeriodInMilliseconds")
	case other != otherWindow:
		r.bad(v, "maximumRequests and timePeriodInMilliseconds are both needed", "")
	case !other && (!own || !ownWindow):
		r.bad(v, "quota and window are both needed", "")
	}
	if len(r.errs) > before {
		return l, false
	}
	if err := l.Validate(); err != nil {
		r.bad(v, reason(err), "")
		return l, false
	}
	return l, true
}

// window reads a length of time as limits text writes it: 500ms, 6s, 2h.
func (r *reader) window(v value, want string) (time.Duration, bool) {
	text, ok := r.text(v, want)
	if !ok {
		return 0, false
	}
	if !strings.ContainsAny(text, " ,/\t\n") {
		if limits, err := core.Limits("1/" + text); err == nil && len(limits) == 1 {
			return limits[0].Window, true
		}
	}
	r.bad(v, fmt.Sprintf("%q: want %s", shorten(text), want), "units are ms, s, m, h, d and w; 366 days at most")
	return 0, false
}

// name reads a name of the kind that stands in stores and headers.
func (r *reader) name(v value) (string, bool) {
	name, ok := r.text(v, "a name")
	if !ok {
		return "", false
	}
	if len(name) > 64 || strings.IndexFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-'
	}) >= 0 {
		r.bad(v, fmt.Sprintf("%q: want 1 to 64 of the characters A-Z a-z 0-9 _ . -", shorten(name)), "")
		return "", false
	}
	return name, true
}
