package file

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/paths"
	"github.com/floodgate-go/floodgate/policy/internal/words"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// Policy is one policy of a file.
type Policy struct {
	Name     string
	Match    Match
	Shared   bool
	Headers  core.Headers
	DryRun   bool
	Wait     time.Duration          // how long a request may wait; 0: none waits
	Exempt   []netip.Prefix         // addresses that the policy does not apply to
	Only     []netip.Prefix         // none: all; requests of all other addresses are denied
	Deny     []netip.Prefix         // addresses whose requests are denied
	Cost     *expression.Expression // nil: 1
	Denied   Denied
	Key      *expression.Expression // nil: one counter for all
	Fallback *expression.Expression // nil: none
	Missing  Missing
	Limits   []core.Limit           // without tiers
	Tier     *expression.Expression // nil: policy.WithTier returns it
	Tiers    []Tier
	Quotas   map[string]Quotas // of single keys
	InFlight *int64            // the most requests of a key that run at a time; nil: any number

	at, nameAt, keyAt, headersAt value
	denyAt                       value // of the first of the fields only and deny
}

// Match describes the requests of a policy: those that meet all its conditions.
type Match struct {
	Methods []string        // none: all
	Paths   []paths.Pattern // none: all
	When    *expression.Expression
}

// Denied is the response to a denied request, in place of the default.
type Denied struct {
	Status      int
	Body        string
	ContentType string
	Header      []core.Header
}

// Missing is the treatment of a request without a key.
type Missing uint8

// The values of the field missing.
const (
	OwnBucket Missing = iota // it shares a counter with the others
	Skip                     // the policy does not apply to it
	Reject                   // it is denied with 400
)

// At returns the place of the policy.
func (p *Policy) At() Place { return p.at.place() }

func (r *reader) policy(v value) (*Policy, bool) {
	p := &Policy{at: v, Headers: core.HeadersOff, Shared: r.spec.Store != nil}
	m, ok := r.fields(v, "a policy",
		field{"name", into(&p.Name, r.name)},
		field{"match", into(&p.Match, r.match)},
		field{"counting", func(v value) {
			p.Shared, _ = choice(r, word[bool]{"shared", true}, word[bool]{"local", false})(v)
			if p.Shared && r.spec.Store == nil {
				r.bad(v, "shared: the file has no store", "write a store before the policies, or counting: local")
			}
		}},
		field{"headers", into(&p.Headers, choice(r, word[core.Headers]{"draft-03", core.HeadersDraft03}, word[core.Headers]{"draft-07", core.HeadersDraft07}, word[core.Headers]{"draft-10", core.HeadersDraft10},
			word[core.Headers]{"x-epoch", core.HeadersXEpoch}, word[core.Headers]{"x-milliseconds", core.HeadersXMillis}, word[core.Headers]{"x-seconds", core.HeadersXSeconds}, word[core.Headers]{"off", core.HeadersOff}))},
		field{"dry-run", into(&p.DryRun, r.boolean)},
		field{"wait", into(&p.Wait, r.duration("a length of time such as 500ms or 6s"))},
		field{"exempt", into(&p.Exempt, r.prefixes)},
		field{"only", into(&p.Only, r.prefixes)},
		field{"deny", into(&p.Deny, r.prefixes)},
		field{"cost", func(v value) {
			p.Cost, _ = r.cost(v)
			r.doubtCost(v, p.Cost)
		}},
		field{"on-denied", into(&p.Denied, r.denied)},
		field{"key", into(&p.Key, r.expression(`an expression such as ip or header["x-api-key"]`, expression.Text))},
		field{"fallback", into(&p.Fallback, r.expression("an expression such as ip", expression.Text))},
		field{"missing", into(&p.Missing, choice(r, word[Missing]{"own-bucket", OwnBucket}, word[Missing]{"skip", Skip}, word[Missing]{"reject", Reject}))},
		field{"limits", into(&p.Limits, r.limits)},
		field{"in-flight", func(v value) {
			n, _ := whole[int64](r, 1, inflight.MaxSlots)(v)
			p.InFlight = &n
		}},
		field{"tier", into(&p.Tier, r.expression("an expression such as user", expression.Text))},
		field{"tiers", into(&p.Tiers, r.tiers)},
		field{"quotas", func(value) {}}, // read when the limits are known
	)
	if ok {
		r.endPolicy(m, p)
	}
	return p, ok
}

// endPolicy checks the fields of a policy against each other.
func (r *reader) endPolicy(m mapping, p *Policy) {
	p.nameAt, p.keyAt, p.headersAt, p.denyAt = m.given["name"], m.given["key"], m.given["headers"], m.given["only"]
	if !m.has("only") {
		p.denyAt = m.given["deny"]
	}
	m.requires("it names the counters, and stands in logs", "name")
	const noKey, noKeyHint = "there is no key that could be missing", "without a key all requests share one counter"
	m.needs("fallback", "key", noKey, noKeyHint)
	m.needs("missing", "key", noKey, noKeyHint)
	m.needs("quotas", "key", "there is no key that could have quotas", noKeyHint)
	missing := "the field limits is missing"
	if m.has("in-flight") {
		missing = ""
	}
	if m.one([]string{"limits", "tiers"}, "", missing, "want "+limitsWant) {
		m.needs("tier", "tiers", "there are no tiers to choose from", "")
	}
	if m.has("quotas") {
		r.quotas(m.given["quotas"], p)
	}
	r.doubtKey(m, p)
	if m.has("tiers") && !m.has("limits") && !m.has("tier") && !r.options.Tier {
		r.bad(m.given["tiers"], "nothing says which tier a request is of", "write the expression tier, or have the program give policy.WithTier")
	}
	if p.InFlight != nil && p.DryRun {
		r.bad(m.given["dry-run"], "true: in-flight has no dry run", "leave out in-flight or dry-run")
	}
	store := r.spec.Store
	if store == nil || !p.Shared {
		return
	}
	if p.InFlight != nil && store.Redis == nil {
		r.bad(p.at, "in-flight: only a store in Redis keeps slots", "count in Redis, or write counting: local")
	} else if p.InFlight != nil && store.OnFailure != resilient.FailClosed {
		r.doubt(m.given["in-flight"], fmt.Sprintf("%d: while Redis does not answer, requests of this policy get 503, whatever on-failure says", *p.InFlight),
			"write counting: local, or on-failure: fail-closed")
	}
	for _, l := range slices.Concat(p.limitSets()...) {
		if problem, hint := store.serves(l); problem != "" {
			r.bad(p.at, problem, hint)
		}
	}
}

// limitSets returns the policy's limits, and those of each of its tiers.
func (p *Policy) limitSets() [][]core.Limit {
	all := [][]core.Limit{p.Limits}
	for _, t := range p.Tiers {
		all = append(all, t.Limits)
	}
	return all
}

// cost reads the cost of a request: a number, or an expression.
func (r *reader) cost(v value) (*expression.Expression, bool) {
	if !isInteger(v) {
		return r.expression("a whole number of hits, or an expression that is one", expression.Number)(v)
	}
	n, ok := whole[int64](r, 0, core.MaxQuota)(v)
	constant, _ := expression.Compile(fmt.Sprint(n), r.spec.Sources, expression.Number)
	return constant, ok
}

func (r *reader) match(v value) (m Match, ok bool) {
	_, ok = r.fields(v, "a mapping with methods, paths and when",
		field{"methods", into(&m.Methods, list(r, 50, "a list of methods such as GET", r.method))},
		field{"paths", into(&m.Paths, list(r, 1000, "a list of paths such as /users/*", r.path))},
		field{"when", into(&m.When, r.expression("an expression that is true or false", expression.Bool))},
	)
	return m, ok
}

// path reads a pattern of paths.
func (r *reader) path(v value) (p paths.Pattern, ok bool) {
	_, ok = r.checked(v, "a path such as /users/*", func(s string) (problem, hint string) {
		p, problem, hint = paths.Parse(s)
		return problem, hint
	})
	return p, ok
}

// Patterns returns the patterns of paths as they are written.
func (m *Match) Patterns() string {
	texts := make([]string, len(m.Paths))
	for i, p := range m.Paths {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

// Exempts reports whether the list exempt has an address.
func (p *Policy) Exempts(a netip.Addr) bool { return contain(p.Exempt, a) }

// HasDenyList reports whether the policy has a list that denies addresses.
func (p *Policy) HasDenyList() bool { return len(p.Only)+len(p.Deny) > 0 }

// Denies reports whether the lists only and deny deny an address. No list has the invalid address.
func (p *Policy) Denies(a netip.Addr) bool {
	return !p.Exempts(a) && (contain(p.Deny, a) || len(p.Only) > 0 && !contain(p.Only, a))
}

func contain(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

func (r *reader) denied(v value) (Denied, bool) {
	d := Denied{ContentType: "text/plain; charset=utf-8"}
	m, ok := r.fields(v, "a mapping with status, body, content-type and headers",
		field{"status", into(&d.Status, whole(r, 400, 599))},
		field{"body", into(&d.Body, r.wanted("the text of the body"))},
		field{"content-type", func(v value) { d.ContentType, _ = r.headerValue(v, "a media type such as text/plain") }},
		field{"headers", into(&d.Header, r.headerLines)},
	)
	m.needs("content-type", "body", "there is no body of this type", "")
	return d, ok
}

// headerLines reads a mapping of the names of headers and their values.
func (r *reader) headerLines(v value) ([]core.Header, bool) {
	pairs, ok := r.pairs(v, "a mapping of header names and their values")
	var lines []core.Header
	for _, p := range pairs {
		if err := expression.HeaderName(p.name); err != nil {
			r.bad(value{p.key, p.value.path}, fmt.Sprintf("%q: %v", words.Shorten(p.name), err), "")
			continue
		}
		text, _ := r.headerValue(p.value, "a header's value")
		lines = append(lines, core.Header{Name: p.name, Value: text})
	}
	return lines, ok
}

// oneTwin notes policies with draft-07 and others with draft-10: one response cannot have both.
// Clients see nothing of a dry run.
func (r *reader) oneTwin(policies []*Policy) {
	const twins = core.HeadersDraft07 | core.HeadersDraft10
	var first *Policy
	for _, p := range policies {
		switch h := p.Headers & twins; {
		case h == 0 || p.DryRun:
		case first == nil:
			first = p
		case h != first.Headers:
			r.bad(p.headersAt, fmt.Sprintf("draft-07 and draft-10 write the same headers, and the policy %s in line %d has the other one", first.Name, first.headersAt.place().Line), "write one of them in all policies")
		}
	}
}
