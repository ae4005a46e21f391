package policy

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/paths"
)

// enforcedFile is a file whose policies are rules of a limiter. Those with dry-run are rules of a
// second one.
type enforcedFile struct {
	*file.Spec
	policies []*enforcedPolicy
	byRule   map[string]*enforcedPolicy // by the names of the limiters' rules
	dry      *core.Limiter              // of the dry run; nil: no policy has one
	slots    []slotPolicy               // those with in-flight
	options  *options
}

// enforcedPolicy is one policy of a file.
type enforcedPolicy struct {
	*file.Policy
	sources *expression.Sources
	options *options
	wait    time.Duration // how long a request may wait; 0: none waits

	first, end int // the policy's part of the limiter's rules
}

func enforce(spec *file.Spec, o *options) *enforcedFile {
	f := &enforcedFile{Spec: spec, options: o, byRule: map[string]*enforcedPolicy{}}
	for _, policy := range spec.Policies {
		p := &enforcedPolicy{Policy: policy, sources: spec.Sources, options: o}
		if !o.impatient {
			p.wait = policy.Wait
		}
		f.policies = append(f.policies, p)
		if policy.InFlight != nil {
			f.slots = append(f.slots, slotPolicy{enforcedPolicy: p})
		}
	}
	return f
}

func (f *enforcedFile) policy(name string) *enforcedPolicy {
	for _, p := range f.policies {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// dryRunSuffix ends the name of the limiter of the dry run, and maxDryName is the longest name of a
// file that has one.
const (
	dryRunSuffix = "-dry-run"
	maxDryName   = 64 - len(dryRunSuffix)
)

// configs returns the configurations of the two limiters: that of the policies that can deny, and
// that of the dry run. Each policy is one rule of its limiter or several.
func (f *enforcedFile) configs(store core.Store) (enforced, dry core.Config) {
	enforced = core.Config{
		Name: f.Name, Store: store, Hooks: &hooks{enforcedFile: f}, Log: f.options.log, Observer: f.options.observer,
		MaxWaiters: f.Local.MaxWaitingOfKey,
	}
	dry = enforced
	dry.Name, dry.DryRun = f.Name+dryRunSuffix, true
	enforced.RulesFor = func(dst []int, r core.Request) ([]int, error) { return f.choose(dst, r, false), nil }
	dry.RulesFor = func(dst []int, r core.Request) ([]int, error) { return f.choose(dst, r, true), nil }
	for _, p := range f.policies {
		c := &enforced
		if p.DryRun {
			c = &dry
		}
		p.first = len(c.Rules)
		c.Rules = append(c.Rules, p.coreRules()...)
		p.end = len(c.Rules)
		for _, r := range c.Rules[p.first:] {
			f.byRule[r.Name] = p
		}
	}
	return enforced, dry
}

// choose is the RulesFor of a limiter: it appends the rules of its policies that apply to the
// request.
func (f *enforcedFile) choose(dst []int, r core.Request, dryRun bool) []int {
	q := remembered(r)
	for _, p := range f.policies {
		if p.DryRun == dryRun && q.asks(p.Name) && p.verdict(r) == matches {
			for i := p.first; i < p.end; i++ {
				dst = append(dst, i)
			}
		}
	}
	return dst
}

// request is a request that the policies of a file decide on. It remembers what several policies
// need. It remembers nothing of the body: see core.Hooks, which says when a limiter reads a body
// twice.
type request struct {
	core.Request
	only []string    // the policies that decide; nil: all
	path *paths.Path // nil: not known yet
}

// asks reports whether a policy decides on the request.
func (r *request) asks(policy string) bool {
	return r == nil || r.only == nil || slices.Contains(r.only, policy)
}

type requestKey struct{}

// Value implements [core.Request]. The limiter gives hooks and key functions a request that wraps
// this one and asks it for values.
func (r *request) Value(key any) any {
	if key == (requestKey{}) {
		return r
	}
	return r.Request.Value(key)
}

// remembered returns the request that a Set decides on, nil for any other.
func remembered(r core.Request) *request {
	q, _ := r.Value(requestKey{}).(*request)
	return q
}

func pathOf(r core.Request) *paths.Path {
	q := remembered(r)
	if q == nil {
		return paths.Of(r)
	}
	if q.path == nil {
		q.path = paths.Of(r)
	}
	return q.path
}

// verdict is whether a policy applies to a request, and the reason if it does not.
type verdict uint8

const (
	matches verdict = iota
	otherMethod
	preflight
	otherPath
	notWhen
	exempted
)

// verdict returns the policy's verdict on a request.
func (p *enforcedPolicy) verdict(r core.Request) verdict {
	switch v := verdictOf(&p.Match, r); {
	case v == preflight && p.denies(r): // a preflight is not limited, but it is denied
		return matches
	case v == matches && len(p.Exempt) > 0 && p.Exempts(p.sources.AddressOf(r)):
		return exempted
	default:
		return v
	}
}

// verdictOf returns whether a request meets the conditions of a match.
func verdictOf(m *file.Match, r core.Request) verdict {
	method := r.Method()
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, method) && (method != "HEAD" || !slices.Contains(m.Methods, "GET")) {
		return otherMethod
	}
	if len(m.Paths) > 0 && !pathOf(r).Matches(m.Paths) {
		return otherPath
	}
	if m.When != nil && !m.When.Holds(r) {
		return notWhen
	}
	if len(m.Methods) == 0 && !(core.DefaultHooks{}).ShouldLimit(r) {
		return preflight
	}
	return matches
}

// why explains a verdict.
func (v verdict) why(m *file.Match) string {
	switch v {
	case otherMethod:
		return "the method is none of " + strings.Join(m.Methods, ", ")
	case preflight:
		return "a CORS preflight is not limited"
	case otherPath:
		return "the path is none of " + m.Patterns()
	case notWhen:
		return "its condition when is false: " + m.When.String()
	case exempted:
		return "the address is in the list exempt"
	}
	if m.When == nil && len(m.Methods) == 0 && len(m.Paths) == 0 {
		return "the policy has no match conditions"
	}
	return "the request meets all conditions of match"
}

// denies reports whether one of the lists only and deny denies the client's address.
func (p *enforcedPolicy) denies(r core.Request) bool {
	return p.HasDenyList() && p.Denies(p.sources.AddressOf(r))
}

// isDenyRule reports whether a rule of the policy implements its lists only and deny.
func (p *enforcedPolicy) isDenyRule(name string) bool { return name == p.DenyRule() }

// costOf returns how many hits a request costs.
func (p *enforcedPolicy) costOf(r core.Request) (int64, error) {
	if p.Cost == nil || p.denies(r) { // a cost of 0 would be allowed
		return 1, nil
	}
	return p.Cost.Hits(r)
}

// errOthers wraps core.SkipRule, so that the log does not say that a rule limits nobody.
var errOthers = fmt.Errorf("the rule is for other requests: %w", core.SkipRule)

// coreRules returns the policy's rules for the limiter: one for its lists of addresses, and one for
// its limits or for each of its tiers. A policy with the field in-flight only has none.
func (p *enforcedPolicy) coreRules() []core.Rule {
	var rules []core.Rule
	if p.HasDenyList() {
		rules = append(rules, core.Rule{
			Name: p.DenyRule(), Limits: []core.Limit{{Window: time.Second}},
			Key: func(dst []byte, r core.Request) ([]byte, error) {
				if !p.denies(r) {
					return dst, errOthers
				}
				return dst, nil
			},
		})
	}
	if len(p.Limits) > 0 {
		rules = append(rules, p.coreRule(p.Name, p.Limits, p.identify))
	}
	for _, t := range p.Tiers {
		if t.Unlimited {
			continue
		}
		rules = append(rules, p.coreRule(p.TierRule(t.Name), t.Limits, func(dst []byte, r core.Request) ([]byte, error) {
			name, err := p.tierOf(r)
			if err == nil && name != t.Name {
				err = errOthers
			}
			if err != nil {
				return dst, err
			}
			return p.identify(dst, r)
		}))
	}
	for i := range rules {
		rules[i].Headers = p.Headers
		if p.Cost != nil {
			rules[i].Cost = p.costOf
		}
	}
	return rules
}

// coreRule returns a rule of the limiter for some limits.
func (p *enforcedPolicy) coreRule(name string, limits []core.Limit, key core.KeyFunc) core.Rule {
	rule := core.Rule{Name: name, Limits: limits, Key: key, MaxWait: p.wait}
	if p.Quotas != nil || p.options.quota != nil {
		rule.Quota = func(r core.Request, l core.Limit) (int64, error) { return p.quotaOf(r, name, l) }
	}
	return rule
}

// tierOf returns the tier of a request: one of the tiers that the policy names.
func (p *enforcedPolicy) tierOf(r core.Request) (name string, err error) {
	if p.Tier != nil {
		var buf [64]byte
		text, failed := p.Tier.Key(buf[:0], r)
		name, err = string(text), failed
	} else {
		name, err = p.options.tier(r)
	}
	if err != nil {
		return "", err
	}
	for _, t := range p.Tiers {
		if t.Name == name {
			return t.Name, nil
		}
	}
	return file.DefaultTier, nil
}

// Keys of a fallback begin with fallbackMark, and no other key does, so that a client cannot choose
// a key that is the fallback of another client.
const (
	mark         = '?'
	fallbackMark = "?:"
)

// identify is the policy's [core.KeyFunc].
func (p *enforcedPolicy) identify(dst []byte, r core.Request) ([]byte, error) {
	if p.Key == nil {
		return dst, nil
	}
	from := len(dst)
	dst, err := p.Key.Key(dst, r)
	if err != nil {
		return dst, err
	}
	if len(dst) > from {
		if p.Fallback != nil && dst[from] == mark {
			dst = slices.Insert(dst, from, mark)
		}
		return dst, nil
	}
	if p.Fallback != nil {
		begin := len(dst) + len(fallbackMark)
		if dst, err = p.Fallback.Key(append(dst, fallbackMark...), r); err != nil || len(dst) > begin {
			return dst, err
		}
		dst = dst[:from]
	}
	switch p.Missing {
	case file.Skip:
		return dst, core.SkipRule
	case file.Reject:
		lacks := cmp.Or(p.Key.Lacks(), fmt.Sprintf("the policy %q finds no key in the request", p.Name))
		return dst, &core.BadRequestError{Detail: lacks}
	default:
		return dst, nil
	}
}

// quotaOf returns the quota of a request for a limit of a rule of the limiter: that of the key in
// the file, else that of the program, else the limit's own.
func (p *enforcedPolicy) quotaOf(r core.Request, name string, l core.Limit) (int64, error) {
	if p.Quotas != nil {
		var room [64]byte
		key, err := p.identify(room[:0], r)
		if err != nil {
			return 0, err
		}
		if own, has := p.Quotas[string(key)]; has {
			if q, found := own.Of(&l); found {
				return q, nil
			}
		}
	}
	if p.options.quota != nil {
		if q, found, err := p.options.quota(r, name, l); err != nil || found {
			return q, err
		}
	}
	return l.Quota, nil
}

// hooks are the hooks of a file's limiters.
type hooks struct {
	core.DefaultHooks
	*enforcedFile
}

// ShouldLimit implements [core.Hooks]: each policy decides what it limits.
func (h *hooks) ShouldLimit(core.Request) bool { return true }

// OnDisallowed implements [core.Hooks].
func (h *hooks) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	const forbidden = 403
	denial := h.DefaultHooks.OnDisallowed(r, d)
	if p := h.byRule[d.Rule()]; p != nil && d.Reason == core.ReasonOverLimit {
		if p.isDenyRule(d.Rule()) {
			denial.Status, denial.Body = forbidden, []byte(`{"type":"about:blank","title":"Forbidden","status":403}`)
		} else {
			denial = applyDenied(&p.Denied, denial)
		}
	}
	if h.options.denied != nil {
		denial = h.options.denied(r, d, denial)
	}
	return denial
}

// applyDenied changes the default denial by the field on-denied.
func applyDenied(s *file.Denied, d core.Denial) core.Denial {
	switch {
	case len(s.Body) > 0:
		d.Body = []byte(s.Body)
		d.Header = []core.Header{{Name: "Content-Type", Value: s.ContentType}}
	case s.Status != 0:
		// The member is the response's status: RFC 9457, section 3.1.2.
		const member = `"status":`
		d.Body = bytes.Replace(d.Body, []byte(member+strconv.Itoa(d.Status)), []byte(member+strconv.Itoa(s.Status)), 1)
	}
	if s.Status != 0 {
		d.Status = s.Status
	}
	d.Header = append(d.Header, s.Header...)
	return d
}
