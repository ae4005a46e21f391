package core

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/internal/requestlog"
)

// Check implements [Checker]. It calls ShouldLimit, then RulesFor, KeyExtra, Cost and the functions
// of the rules. If one of the latter reads the body, Check first peeks at the keys known so far, at
// a cost of 1 if Cost is not known. If they deny the request, and it may not wait, the body is not
// read. Otherwise Check calls all functions again, except ShouldLimit. One take then charges all
// counters.
func (l *Limiter) Check(r Request) (d Decision) {
	s := l.current.Load()
	limited := s.hooks.ShouldLimit(r)
	c := l.session(s)
	if limited {
		c.check(r, &d, &l.lines)
		if s.dryRun && !d.Allowed {
			d.DryRun = true
			s.hooks.OnDisallowed(r, d)
			d.Allowed = true
		}
	} else {
		d.Allowed, d.Reason, d.snap, d.rule = true, ReasonSkipped, s, -1
	}
	l.end(r.Context(), c, &d)
	if d.Reason == ReasonBadRequest && !d.Allowed {
		l.Settle(r, d, Outcome{Status: statusBadRequest})
	}
	return d
}

// asking holds the answers of hooks and rules about a request.
type asking struct {
	rules     []int // by Config.RulesFor
	extra     string
	wantsBody bool   // a function wants the body, which cannot be read yet
	bad       error  // the request is at fault: the other keys are charged all the same
	fault     error  // something else is wrong: nothing is charged
	rule      string // whose function has failed; "": a hook

	body bodyProbe
}

// check decides on a request and writes the decision into d.
func (c *session) check(r Request, d *Decision, lines *lines) {
	a := &c.ask
	a.body = bodyProbe{Request: r, snap: c.snap}
	c.gather()
	if a.wantsBody && a.fault == nil {
		if err := c.do(r.Context(), OpPeek); err != nil || !c.batch.Allowed && (!c.snap.waits || c.maxWait() == 0) {
			c.conclude(r, d, err)
			return
		}
		a.body.open = true
		c.empty()
		c.gather()
	}
	if a.fault != nil {
		c.fail(r.Context(), d, a.fault)
		kind := hookFailure
		if a.rule != "" {
			kind = ruleFailure
		}
		c.failures.report(r.Context(), c.snap, kind, "check", a.rule, a.fault)
		return
	}
	if c.snap.waits {
		t := turn{session: c, lines: lines, ctx: r.Context()}
		c.conclude(r, d, t.take())
		t.finish(d)
	} else {
		c.conclude(r, d, c.do(r.Context(), OpTake))
	}
	if a.bad != nil && d.Allowed {
		d.Allowed, d.Reason, d.Err = false, ReasonBadRequest, a.bad
	}
}

// maxWait returns the shortest MaxWait of the rules that deny the request.
func (c *session) maxWait() time.Duration {
	least := Never
	for i := range c.batch.Items {
		if it := &c.batch.Items[i]; it.denied() {
			least = min(least, c.snap.rules[it.Rule].MaxWait)
		}
	}
	return least % Never // 0 if none denies
}

func (it *Item) denied() bool {
	return !it.Unknown && slices.ContainsFunc(it.Results, func(r Result) bool { return !r.Allowed })
}

// conclude writes the store's decision, or its error, into d.
func (c *session) conclude(r Request, d *Decision, err error) {
	if err == nil {
		c.decide(d)
		return
	}
	c.fail(r.Context(), d, err)
	c.reportStore(r.Context(), "check", err)
}

// gather calls the hooks and the functions of the rules, and adds an item for each key. As long as
// the body cannot be read, a function that wants to read it is left out.
func (c *session) gather() {
	s, a := c.snap, &c.ask
	r := Request(&a.body)
	a.wantsBody, a.bad, a.fault, a.extra, c.cost = false, nil, nil, "", 1
	rules := s.all
	if s.rulesFor != nil {
		if rules = c.askRules(r); a.wantsBody || a.bad != nil || a.fault != nil {
			return
		}
	}
	if !s.plain {
		extra, err := s.hooks.KeyExtra(r)
		switch c.note("KeyExtra", "", err) {
		case missing:
			return
		case given:
			a.extra = extra
		}
		cost, err := checkedCost(s.hooks.Cost(r))
		if c.note("Cost", "", err) == given {
			c.cost = cost
		}
	}
	for _, i := range rules {
		if a.fault != nil {
			return
		}
		c.askRule(r, i)
	}
}

// answer is the result of a hook or a function of a rule.
type answer uint8

const (
	missing answer = iota // there is none: it has failed, or wants to read the body
	atFault               // the request is at fault
	given
)

// note sorts the error of a hook, or of a function of a rule, into the fields of asking. what
// names the hook or function.
func (c *session) note(what, rule string, err error) answer {
	a := &c.ask
	switch {
	case a.body.wanted:
		a.body.wanted, a.wantsBody = false, true
		return missing
	case err == nil:
		return given
	case rule != "":
		what = fmt.Sprintf("%s of rule %q", what, rule)
	}
	err = fmt.Errorf("%s: %w", what, err)
	if errors.Is(err, ErrBadRequest) {
		if a.bad == nil {
			a.bad = err
		}
		return atFault
	}
	a.fault, a.rule = err, rule
	return missing
}

// askRules asks which rules are for the request.
func (c *session) askRules(r Request) []int {
	a := &c.ask
	const rulesFor = "choosing the rules (RulesFor)"
	chosen, err := c.snap.rulesFor(a.rules[:0], r)
	if errors.Is(err, SkipRule) {
		chosen, err = chosen[:0], nil
	}
	if c.note(rulesFor, "", err) != given {
		return nil
	}
	a.rules = append(a.rules[:0], chosen...) // a slice of the function's own stays as it is
	former := -1
	for _, i := range a.rules {
		if i <= former || i >= len(c.snap.rules) {
			c.note(rulesFor, "", fmt.Errorf("%v: want indexes of the %d rules in ascending order", chosen, len(c.snap.rules)))
			return nil
		}
		former = i
	}
	return a.rules
}

// askRule asks a rule for its key, cost and quotas, and adds the item.
func (c *session) askRule(r Request, i int) {
	rule := &c.snap.rules[i]
	if rule.Key == nil {
		return
	}
	from := len(c.keys)
	// The key function gets an empty slice with room behind it: whatever it does with it,
	// the keys of other rules stay.
	key, err := rule.Key(c.keys[from:from], r)
	if err != nil || c.ask.body.wanted {
		c.keyless(r, rule, err)
		return
	}
	if rule.keyless.Load() < keylessRequests {
		rule.keyless.Store(keylessRequests)
	}
	c.keys = closeKey(append(c.keys[:from], key...), from, c.ask.extra)
	cost, said := c.cost, given
	if rule.Cost != nil {
		cost, err = checkedCost(rule.Cost(r))
		if said = c.note("cost", rule.Name, err); said == atFault {
			cost = 1 // a request that is at fault counts too
		}
	}
	var quotas []int64
	if rule.Quota != nil && said == given {
		quotas, said = c.askQuotas(r, rule)
	}
	if said == missing {
		c.keys = c.keys[:from]
		return
	}
	c.addItem(i, from, cost, quotas)
}

// keyless notes why a rule has returned no key.
func (c *session) keyless(r Request, rule *compiledRule, err error) {
	switch {
	case c.ask.body.wanted || !errors.Is(err, SkipRule):
		c.note("key", rule.Name, err)
	case err == SkipRule: //nolint:errorlint // one that wraps it is meant
		c.skipped(r, rule)
	}
}

// keylessRequests is how often a rule must skip before the log warns. A request whose body is read
// counts twice.
const keylessRequests = 100

// skipped logs once that the first requests of a rule have had no key: such a rule limits nobody.
// It counts until a request has a key.
func (c *session) skipped(r Request, rule *compiledRule) {
	if rule.keyless.Load() >= keylessRequests || rule.keyless.Add(1) != keylessRequests {
		return
	}
	c.snap.logger().LogAttrs(r.Context(), slog.LevelWarn, "floodgate: a rule limits nobody: its key function has returned no key for its first requests. "+
		"If a middleware such as the authentication sets the key, mount the limiter inside that middleware", slog.String("rule", rule.Name))
}

// askQuotas asks a rule for the quotas of the request.
func (c *session) askQuotas(r Request, rule *compiledRule) ([]int64, answer) {
	first := len(c.quotas)
	for i := range rule.Limits {
		l := &rule.Limits[i]
		q, err := rule.Quota(r, *l)
		switch {
		case errors.Is(err, SkipRule):
			err = fmt.Errorf("a quota function cannot leave out the rule: return core.Unlimited, or SkipRule from the rule's Key: %w", err)
		case err == nil && !l.canHave(q):
			err = fmt.Errorf("%w: %w", ErrConfig, checkQuota(l, q))
		}
		if err != nil {
			err = fmt.Errorf("limit %q: %w", l.Name, err)
		}
		if said := c.note("quota", rule.Name, err); said != given {
			return nil, said
		}
		c.quotas = append(c.quotas, q)
	}
	return c.quotas[first:len(c.quotas):len(c.quotas)], given
}

func checkedCost(cost int64, err error) (int64, error) {
	if err == nil && cost < 0 {
		err = fmt.Errorf("%w: cost %d: must be 0 or more", ErrConfig, cost)
	}
	return cost, err
}

// bodyProbe is the request that hooks and key functions get. Until it is open, its body
// cannot be read: wanted is set if one of them tries.
type bodyProbe struct {
	Request

	snap   *snapshot
	open   bool
	wanted bool
}

var errBodyLater = errors.New("floodgate: the body is read later")

func (p *bodyProbe) Body(most int) ([]byte, error) {
	if p.open {
		return p.Request.Body(most)
	}
	p.wanted = true
	return nil, errBodyLater
}

func (p *bodyProbe) Value(key any) any {
	if _, is := key.(requestlog.Key); is {
		return p.snap.logger()
	}
	return p.Request.Value(key)
}

// Deny implements [Checker]: it asks Hooks.OnDisallowed.
func (l *Limiter) Deny(r Request, d Decision) Denial {
	if d.snap == nil {
		return l.current.Load().deny(r, &d)
	}
	return d.snap.deny(r, &d)
}

// Denial returns the response of [Hooks.OnDisallowed] for a handler that denies a request itself.
// The adapters' functions Deny write it. If the decision is Allowed, the response is a 429 without
// Retry-After.
func (d Decision) Denial(r Request) Denial {
	if d.snap == nil {
		return d.denial()
	}
	return d.snap.deny(r, &d)
}

func (s *snapshot) deny(r Request, d *Decision) Denial {
	if s.plain {
		return d.denial() // as DefaultHooks does
	}
	den := s.hooks.OnDisallowed(r, *d)
	if den.Status < 200 || den.Status > 599 {
		den.Status = d.denialStatus()
	}
	return den
}
