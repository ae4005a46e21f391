package file

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// Quotas says where the quotas of single keys are: in a file or in a source that the
// program gives.
type Quotas struct {
	at     value
	File   string // in the folder of the policy file or below it; "" if there is a source
	Source string
	Every  time.Duration // between two readings of a source
}

// defaultEvery is the time between two readings of a source, if the file does not say
// it, and leastEvery the shortest that it can say.
const (
	defaultEvery = time.Minute
	leastEvery   = time.Second
)

// At returns the place of the field quotas.
func (q *Quotas) At() Place { return q.at.place() }

// quotasMapping returns the table of quotas.
func quotasMapping() *mapping[*Quotas] {
	path := checked("the path of a file", func(s string) (problem, hint string) {
		if !filepath.IsLocal(s) {
			return "is not below the folder of the policy file", "write a path such as customers.quotas, from that folder; the program can give a file elsewhere, with policy.WithQuotas and policy.QuotaFile"
		}
		return "", ""
	})
	every := duration("a time such as 30s or 5m")
	return &mapping[*Quotas]{
		name: "quotas", want: "a mapping such as {file: customers.quotas} or {source: customers}", about: "Where the quotas of single keys are, which take the place of those in `limits`.",
		fields: []field[*Quotas]{
			{
				name: "file", example: "customers.quotas",
				about: "The file, in the folder of the policy file or below it, that has a key, a colon and quotas on each line.",
				value: set(path, func(q **Quotas) *string { return &(*q).File }),
			}, {
				name: "source", example: "customers",
				about: "The name of the source that the program gives with `policy.WithQuotas`.",
				value: set(name(), func(q **Quotas) *string { return &(*q).Source }),
			}, {
				name: "every", initial: words.Duration(defaultEvery), example: "30s",
				about: "The time between two readings of a source, at least 1s.",
				value: then(every, func(r *reader, v value, q **Quotas, d time.Duration) {
					if (*q).Every = d; d < leastEvery {
						r.bad(v, fmt.Sprintf("%s: want at least %s", words.Duration(d), words.Duration(leastEvery)), "")
					}
				}),
			},
		},
		rules: all{
			exactlyOne{fields: []string{"file", "source"}, several: "want either file or source"},
			needs{"every", "source", "is for a source", "a file is read again when it changes"},
		},
	}
}

func newQuotas(v value) *Quotas { return &Quotas{at: v, Every: defaultEvery} }

// quota is an expression that is a number or text such as a table of quotas has.
func quota() kind[*expression.Expression] {
	e := compiled("an expression that is a number or text such as 1000/m", func(e *expression.Expression) bool { return e.MayBeNumber() || e.MayBeText() })
	return kind[*expression.Expression]{e.shape, func(r *reader, v value) (*expression.Expression, bool) {
		opened, ok := r.open(v)
		if !ok {
			return nil, false
		}
		if isInteger(opened) || isMapping(opened) {
			r.bad(v, describe(opened.node)+": want an expression", foreignFields["quota"])
			return nil, false
		}
		return e.read(r, v)
	}}
}

// Sets returns the rule's limits, or those of each tier that has some.
func (rule *Rule) Sets() [][]core.Limit {
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

// endQuotas checks the fields quota and quotas of a rule.
func (r *reader) endQuotas(rule *Rule, given map[string]value) {
	for _, name := range []string{"quota", "quotas"} {
		if has(given, name) {
			r.apart(given[name], rule)
			r.openDefault(given[name], rule)
		}
	}
	if rule.Quota == nil {
		return
	}
	if !rule.Quota.MayBeText() {
		for _, limits := range rule.Sets() {
			if len(limits) > 1 {
				r.bad(given["quota"], fmt.Sprintf("%q: is a number, and the rule has %d limits", words.Shorten(rule.Quota.String()), len(limits)), `write text that says the windows too, as in user == "ann" ? "1000/m, 20000/d" : ""`)
				break
			}
		}
	}
	if name := rule.Quota.Written(); name != "" {
		r.doubt(given["quota"], fmt.Sprintf("%q: a client writes the %s itself, and so chooses its quota", words.Shorten(rule.Quota.String()), name),
			"read a header that your proxy sets for every request, and name the header in trusted-headers; or write a table of quotas")
	}
	if rule.Quota.Constant() {
		r.doubt(given["quota"], fmt.Sprintf("%q: is the same for all requests", words.Shorten(rule.Quota.String())), "write the quota in limits")
	}
}

// apart notes limits of one set that quotas cannot tell apart.
func (r *reader) apart(v value, rule *Rule) {
	for _, limits := range rule.Sets() {
		seen := map[time.Duration]bool{}
		for _, l := range limits {
			if seen[l.Window] {
				r.bad(v, "two limits have a window of "+words.Duration(l.Window), "the window says which limit a quota is for: write the two limits as two rules")
				return
			}
			seen[l.Window] = true
		}
	}
}

// openDefault notes that requests of no tier have no limit.
func (r *reader) openDefault(v value, rule *Rule) {
	for _, t := range rule.Tiers {
		if t.Name == DefaultTier && t.Unlimited {
			r.doubt(v, "the tier default is unlimited: so is a key that is not known, and quotas do not change that", "write limits for the tier default")
		}
	}
}
