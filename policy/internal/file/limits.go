package file

import (
	"fmt"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// algorithms are those that limits may name. The first one is the default, which is
// that of core.ParseLimits too.
var algorithms = []core.Algorithm{core.SlidingWindow, core.FixedWindow, core.BucketedWindow, core.SlidingLog, core.TokenBucket}

const (
	limitsWant = `limits such as 3/6s, or a list of them`
	limitWant  = `a limit such as 3/6s, or quota and window`

	deniesAllHint = "write 1 or more; to try a policy without denying, write dry-run: true"
)

// limits is text such as "10/s, 100/m", one limit written with its fields, or a
// list of either.
func limits() kind[[]core.Limit] {
	one := limit()
	many := listOf(one.shape, core.MaxLimits, false)
	whole := oneOf("text such as `3/6s` or `10/s, 100/m`, a [limit](#limit), or a list of these", one.shape, many)
	look := shape{whole.words, func(d *definitions) object {
		return d.ref("limits", func() object { return whole.schema(d) })
	}, one.sections}
	return kind[[]core.Limit]{look, func(r *reader, v value) ([]core.Limit, bool) {
		before := len(r.errs)
		var all []core.Limit
		for _, item := range r.items(v, core.MaxLimits, limitsWant) {
			got, _ := one.read(r, item)
			all = append(all, got...)
		}
		r.sameCounter(v, all)
		return all, len(r.errs) == before
	}}
}

// sameCounter notes limits that would count the same.
func (r *reader) sameCounter(v value, limits []core.Limit) {
	type counter struct {
		algorithm         core.Algorithm
		window, precision time.Duration
		aligned           bool
		zone              string
	}
	seen := map[counter]core.Limit{}
	for _, l := range limits {
		c := counter{l.Algorithm, l.Window, l.Precision, l.Aligned, ""}
		if l.Zone != nil {
			c.zone = l.Zone.String()
		}
		if other, twice := seen[c]; twice {
			r.bad(v, fmt.Sprintf("%v and %v count the same: only the smaller can matter", other, l), "leave one out")
		}
		seen[c] = l
	}
}

// limit is one entry of limits: text may have several.
func limit() kind[[]core.Limit] {
	fields := limitMapping().kind(func(value) core.Limit { return core.Limit{Algorithm: algorithms[0]} })
	item := `[0-9]+(\s*/\s*[0-9]*|\s+[Pp][Ee][Rr]\s+([0-9]+\s*)?)[A-Za-z]+(\s+(aligned|` +
		strings.Join(algorithmList(), "|") + `|(burst|precision|name)=[A-Za-z0-9_.-]+|[A-Z][A-Za-z0-9_+/-]*))*`
	text := shape{"text", func(d *definitions) object {
		return d.ref("limitText", func() object {
			return object{{"type", "string"}, {"pattern", `^\s*` + item + `\s*(,\s*` + item + `\s*)*$`}}
		})
	}, nil}
	return kind[[]core.Limit]{oneOf("a limit", text, fields.shape), func(r *reader, v value) ([]core.Limit, bool) {
		opened, ok := r.open(v)
		if !ok {
			return nil, false
		}
		if !isMapping(opened) {
			return r.limitText(opened)
		}
		before := len(r.errs)
		l, ok := fields.read(r, opened)
		if ok = ok && len(r.errs) == before; !ok {
			return nil, false
		}
		return []core.Limit{l}, true
	}}
}

// limitText reads limits that are written as text.
func (r *reader) limitText(v value) ([]core.Limit, bool) {
	text, ok := r.text(v, limitWant)
	if !ok {
		return nil, false
	}
	before := len(r.errs)
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
	return all, len(r.errs) == before
}
