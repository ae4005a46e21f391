package login

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// Guard limits the attempts on a login form. [NewGuard] makes it. It is a
// [core.Checker], which the Middleware of every adapter accepts. Its methods may be
// called concurrently.
type Guard struct {
	config   Config
	limiter  *core.Limiter
	memory   *memory
	signer   *signer
	hasher   hasher
	observer *observer // nil: none
	close    func() error
	tally    tally
	judging  judging
	lines    lines
}

var _ core.Checker = (*Guard)(nil)

// NewGuard returns a guard for a configuration. The error wraps [core.ErrConfig] and
// names the invalid fields. Call Close when the guard is no longer needed.
func NewGuard(c Config) (*Guard, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c = c.filled()
	store, closeStore, err := c.openStore()
	if err != nil {
		return nil, err
	}
	g := &Guard{config: c, hasher: newHasher(c.Secrets), close: closeStore}
	if c.Observer != nil {
		g.observer = &observer{Observer: c.Observer, identify: c.Identify}
	}
	g.limiter, err = core.New(core.Config{
		Name:    c.Name,
		Rules:   g.rules(),
		Store:   store,
		Headers: c.Headers,
		// An attacker who can damage a counter must not get a new quota by that.
		DenyUnreadable: true,
		Log:            c.Log,
		Observer:       g.observed(),
		Hooks:          core.HookFuncs{ShouldLimitFunc: g.shouldLimit, OnDisallowedFunc: g.disallowed},
	})
	if err == nil {
		g.memory, err = openMemory(&g.config, store)
	}
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	g.signer = newSigner(&g.config)
	return g, nil
}

// Close closes the counters that the guard keeps in this process. It does not close
// Config.Store. After Close, the guard denies attempts that need these counters with
// 503.
func (g *Guard) Close() error { return errors.Join(g.memory.close(), g.close()) }

// Guarantees returns what the guard's store promises: see [core.Limiter.Guarantees].
func (g *Guard) Guarantees() core.Guarantees { return g.limiter.Guarantees() }

// shouldLimit returns false for a request that cannot be an attempt: its method is
// not in Config.Methods, it has no body, and no source finds a username in it or
// returns an error, as it would if the query had the username. A request with a body
// may be an attempt whatever its method is, because a middleware before or behind the
// guard may override the method.
func (g *Guard) shouldLimit(r core.Request) bool {
	if g.config.logsIn(r) {
		return true
	}
	body, err := r.Body(1)
	return err != nil || len(body) > 0 || g.config.names(r)
}

// logsIn reports whether the method of a request is one that logs in.
func (c *Config) logsIn(r core.Request) bool { return slices.Contains(c.Methods, r.Method()) }

// Check decides whether an attempt may reach the handler, and charges for it. It
// implements [core.Checker]. It waits for the Verdict.Delay of Config.OnSuspicion.
func (g *Guard) Check(r core.Request) (d core.Decision) {
	a := &attempt{Request: r, guard: g, logsIn: g.config.logsIn(r)}
	decided := false
	defer func() {
		if !decided { // a hook or key function has panicked
			g.lost(a, &d)
		}
		if !decided || !d.Allowed || !d.NeedsOutcome() {
			g.lines.leave(a)
		}
	}()
	g.join(a)
	d = g.limiter.Check(a)
	// A limit that does not apply to this client may have denied the attempt. The
	// limiter then decides again without that limit. A denied attempt has not been
	// charged.
	if exceeds(d, ruleDevice) || exceeds(d, ruleTrusted) {
		a.distrust = true
		d = g.again(a, d)
	}
	if exceeds(d, rulePair) && g.memory.pardoned(a, g.limiter) {
		d = g.again(a, d)
	}
	if a.place != nil && a.basic {
		d = g.inLine(a, d)
	}
	if exceeds(d, ruleAccount) && g.memory.knows(a) {
		d = g.checkKnown(a, d)
	}
	d.SetNote(a)
	switch {
	case !d.Allowed:
		if d.Reason == core.ReasonOverLimit {
			g.tell(a, EventDenied, d)
		}
	case d.Reason == core.ReasonWithinLimits:
		g.suspect(a, &d)
	}
	decided = true
	g.observe(a, &d)
	if d.Allowed && d.NeedsOutcome() && g.config.trusts() {
		g.judging.begin(a, g.memory.trustOf(a))
	}
	return d
}

// again returns a new decision of the limiter, in place of one that denied the attempt.
func (g *Guard) again(a *attempt, denied core.Decision) core.Decision {
	g.tally.replaced(denied)
	return g.limiter.Check(a)
}

// checkKnown decides on an attempt from a known address if the account's limit denies
// strangers. If the limit of the trusted clients denies the attempt too, checkKnown
// returns the denial of the limit with the shorter wait.
func (g *Guard) checkKnown(a *attempt, stranger core.Decision) core.Decision {
	a.known = true
	seen := a.seen
	d := g.again(a, stranger)
	if !exceeds(d, ruleTrusted) {
		return d
	}
	a.known = false
	if stranger.RetryAfter < d.RetryAfter {
		a.seen = seen
		return stranger
	}
	return d
}

// exceeds reports whether a limit of the rule denies the request.
func exceeds(d core.Decision, rule string) bool {
	if d.Allowed || d.Reason != core.ReasonOverLimit {
		return false
	}
	for s := range d.Limits() {
		if s.Denied && s.Rule == rule {
			return true
		}
	}
	return false
}

// suspect sets the attempt's suspicion. If the account is suspicious and the client is
// a stranger, it calls OnSuspicion and carries out the Verdict.
func (g *Guard) suspect(a *attempt, d *core.Decision) {
	for s := range d.Limits() {
		if s.Rule == ruleAccount {
			a.suspicion.Failures = s.Limit.Quota - s.Remaining - 1 // without this attempt
			a.suspicion.Limit = s.Limit.Quota
		}
	}
	if a.suspicion.Limit == 0 || a.suspicion.Failures < g.config.SuspiciousAfter {
		return
	}
	if g.memory.knows(a) { // the failures are those of strangers
		a.known, a.suspicion = true, Suspicion{}
		return
	}
	a.suspicion.Suspicious, a.suspicion.Username = true, a.account
	g.tell(a, EventSuspected, *d)
	if g.config.OnSuspicion == nil {
		return
	}
	returned := false
	defer func() {
		if !returned { // OnSuspicion panicked: the attempt does not reach the handler
			g.giveBack(a, *d)
		}
	}()
	v := g.config.OnSuspicion(a.Request, a.suspicion)
	gone := wait(a.Context(), v.Delay)
	returned = true
	if gone != nil && v.Deny == nil {
		g.abandon(a, d, gone)
		return
	}
	if v.Deny != nil {
		g.giveBack(a, *d)
		a.denial = v.Deny
		d.Allowed, d.Reason = false, core.ReasonOverLimit
		d.RetryAfter = core.Never // no wait makes the guard allow it
		g.tally.overruled.Add(1)
		g.tell(a, EventDenied, *d)
	}
}

// abandon ends an attempt whose client went away during the delay. The attempt does
// not reach the handler, because a client that closes only its own half of the
// connection could still read the response, without the delay. The attempt counts as a
// failure.
func (g *Guard) abandon(a *attempt, d *core.Decision, gone error) {
	g.Settle(a, *d, core.Outcome{Status: core.StatusCanceled, Canceled: true})
	d.Allowed, d.Reason, d.Err = false, core.ReasonFailed, gone
	g.tally.overruled.Add(1)
}

// wait waits for d. If the context ends before that, it returns the cause.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// giveBack refunds an attempt that has not reached the handler. It does not refund the
// hit of the address, so that one address cannot make OnSuspicion run without end.
func (g *Guard) giveBack(a *attempt, d core.Decision) {
	g.limiter.Settle(a, d, neither.outcome())
}

// Deny returns the response to an attempt that Check has denied. It implements
// [core.Checker].
func (g *Guard) Deny(r core.Request, d core.Decision) core.Denial { return g.limiter.Deny(r, d) }

// disallowed returns the Verdict.Deny of OnSuspicion, or the response of OnDisallowed.
func (g *Guard) disallowed(r core.Request, d core.Decision) core.Denial {
	if a, ok := d.Note().(*attempt); ok && a.denial != nil {
		return *a.denial
	}
	return g.config.OnDisallowed(r, d)
}

// Settle counts the outcome of an attempt that Check has allowed. It implements
// [core.Checker].
func (g *Guard) Settle(r core.Request, d core.Decision, o core.Outcome) {
	a, ok := d.Note().(*attempt)
	if !ok || !a.settled.CompareAndSwap(false, true) {
		return
	}
	result := g.config.judge(a, o)
	g.limiter.Settle(r, d, result.outcome())
	g.judging.end(a)
	if a.basic {
		g.memory.noteResult(a, result)
	}
	g.lines.leave(a)
	switch {
	case result == success:
		// Package resilient has logged that the store does not answer.
		if err := g.remember(a); err != nil && !errors.Is(err, resilient.ErrDown) {
			g.config.Log.Warn("login: a client's address could not be remembered: it does not count as known for the account", "error", err)
		}
		if !a.basic && g.tally.succeeds() { // requests with Basic authentication need not have failures
			g.config.Log.Warn("login: no attempt has failed so far. If the handler answers a wrong password with a status below 400, the guard takes it for a success and limits nobody: "+
				"answer it with 401, or set login.Config.Success", "limiter", g.config.Name, "attempts", neverFails)
		}
		g.tell(a, EventSucceeded, d)
	case o.Canceled && !o.Panicked:
		g.tell(a, EventCanceled, d)
	case result == failure:
		g.tally.failed.Store(true)
		g.tell(a, EventFailed, d)
	}
}

// remember makes the address of an attempt known for its account.
func (g *Guard) remember(a *attempt) error {
	if g.config.ForgetAddresses || a.account == "" || a.address == "" {
		return nil
	}
	return g.memory.remember(a.Context(), g.memory.trustOf(a), a.address, a.account)
}

// deny is the default OnDisallowed. It returns the standard denial without the names
// of limits, which strangers need not know.
func deny(r core.Request, d core.Decision) core.Denial {
	denial := core.DefaultHooks{}.OnDisallowed(r, d)
	if d.Reason == core.ReasonOverLimit {
		denial.Body = []byte(`{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"Too many attempts to log in. Try again later."}`)
	}
	return denial
}
