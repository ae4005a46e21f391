package login

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// Guard protects a login form. It is made by [NewGuard], and is a
// [core.Checker]: every adapter's Middleware takes it. Its methods may be called
// concurrently.
type Guard struct {
	config  Config
	limiter *core.Limiter
	memory  *memory
	signer  *signer
	hasher  hasher
	close   func() error
	tally   tally
	judging judging
}

var _ core.Checker = (*Guard)(nil)

// NewGuard returns a guard. The error wraps [core.ErrConfig] and names every
// field that is wrong. Close ends it.
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
	g.limiter, err = core.New(core.Config{
		Name:    c.Name,
		Rules:   g.rules(),
		Store:   store,
		Headers: c.Headers,
		// Whoever could damage counters must not begin anew with them.
		DenyUnreadable: true,
		Log:            c.Log,
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

// Close closes the counters that the guard has made in this process. It does not
// close Config.Store. After Close, attempts that need these counters are denied
// with 503.
func (g *Guard) Close() error { return errors.Join(g.memory.close(), g.close()) }

// Traits returns what the guard's store promises: see [core.Limiter.Traits].
func (g *Guard) Traits() core.Traits { return g.limiter.Traits() }

// shouldLimit returns false for a request that cannot be an attempt: it has
// another method, no body, and no username where handlers could find one, such
// as the query. A request with a body may be an attempt: a middleware that
// overrides methods may make a POST of it, or have made a GET of a POST.
func (g *Guard) shouldLimit(r core.Request) bool {
	if slices.Contains(g.config.Methods, r.Method()) {
		return true
	}
	body, err := r.Body(1)
	return err != nil || len(body) > 0 || g.config.refuses(r)
}

// Check implements [core.Checker].
func (g *Guard) Check(r core.Request) core.Decision {
	a := &attempt{Request: r, guard: g}
	d := g.limiter.Check(a)
	// The client may not be subject to the limit that denies it. The limiter is
	// then asked again without that limit. Nothing has been charged.
	if exceeds(d, ruleDevice) || a.byDevice() && exceeds(d, ruleTrusted) {
		a.distrust = true
		d = g.again(a, d)
	}
	if exceeds(d, rulePair) && g.memory.pardoned(a, g.limiter) {
		d = g.again(a, d)
	}
	if exceeds(d, ruleAccount) && g.memory.knows(a) {
		d = g.checkKnown(a, d)
	}
	d.Note = a
	switch {
	case !d.Allowed:
		if d.Reason == core.ReasonOverLimit {
			g.tell(a, EventRefused, d)
		}
	case d.Reason == core.ReasonWithinLimits:
		g.suspect(a, &d)
	}
	if d.Allowed && d.NeedsOutcome() && a.named && g.config.trusts() {
		g.judging.begin(a, g.memory.trustOf(a))
	}
	return d
}

// again asks the limiter again, in place of a decision that denied the request.
func (g *Guard) again(a *attempt, denied core.Decision) core.Decision {
	g.tally.replaced(denied)
	return g.limiter.Check(a)
}

// checkKnown decides on an attempt from a known address that the account's limit
// denies. If the trusted clients have used up their limit too, it is a
// stranger's, and waits for whichever of the two limits admits it first.
func (g *Guard) checkKnown(a *attempt, stranger core.Decision) core.Decision {
	a.known = true
	d := g.again(a, stranger)
	if !exceeds(d, ruleTrusted) {
		return d
	}
	a.known = false
	if stranger.RetryAfter < d.RetryAfter {
		return stranger
	}
	return d
}

// exceeds says that a limit of the rule refuses the request.
func exceeds(d core.Decision, rule string) bool {
	if d.Allowed || d.Reason != core.ReasonOverLimit {
		return false
	}
	for s := range d.Limits() {
		if s.Exceeded && s.Rule == rule {
			return true
		}
	}
	return false
}

// suspect finds out whether the account is suspicious, and asks OnSuspicion.
func (g *Guard) suspect(a *attempt, d *core.Decision) {
	for s := range d.Limits() {
		if s.Rule == ruleAccount {
			a.suspicion.Failures = s.Limit.Quota - s.Remaining - 1 // this one is no failure yet
			a.suspicion.Limit = s.Limit.Quota
		}
	}
	if a.suspicion.Limit == 0 || a.suspicion.Failures < g.config.SuspiciousAfter {
		return
	}
	if g.memory.knows(a) { // strangers' guesses are none of this client's
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
		if !returned { // it has panicked: no attempt has been made
			g.giveBack(a, *d)
		}
	}()
	v := g.config.OnSuspicion(a.Request, a.suspicion)
	gone := wait(a.Context(), v.Delay)
	returned = true
	if gone != nil && v.Refuse == nil {
		g.abandon(a, d, gone)
		return
	}
	if v.Refuse != nil {
		g.giveBack(a, *d)
		a.refusal = v.Refuse
		d.Allowed, d.Reason = false, core.ReasonOverLimit
		d.LimitStatus.RetryAfter = core.Never // no waiting helps: what is asked for does
		g.tally.refused.Add(1)
		g.tell(a, EventRefused, *d)
	}
}

// abandon ends an attempt whose client has gone while it was delayed. The
// handler does not judge it: a client that closes only its own half of the
// connection would still read the answer, without the delay. The attempt counts as
// a failure.
func (g *Guard) abandon(a *attempt, d *core.Decision, gone error) {
	g.Settle(a, *d, core.Outcome{Status: core.StatusCanceled, Canceled: true})
	d.Allowed, d.Reason, d.Err = false, core.ReasonFailed, gone
	g.tally.refused.Add(1)
}

// wait waits for d, and returns why the context has ended if it has.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// giveBack gives back an attempt that has not reached the handler: all but the
// address's part of it, or one address could ask OnSuspicion without end.
func (g *Guard) giveBack(a *attempt, d core.Decision) {
	g.limiter.Settle(a, d, core.Outcome{Status: http.StatusInternalServerError}) // neither a success nor a failure
}

// Deny implements [core.Checker].
func (g *Guard) Deny(r core.Request, d core.Decision) core.Denial { return g.limiter.Deny(r, d) }

// disallowed returns the refusal of OnSuspicion, or what OnDisallowed returns.
func (g *Guard) disallowed(r core.Request, d core.Decision) core.Denial {
	if a, ok := d.Note.(*attempt); ok && a.refusal != nil {
		return *a.refusal
	}
	return g.config.OnDisallowed(r, d)
}

// Settle implements [core.Checker].
func (g *Guard) Settle(r core.Request, d core.Decision, o core.Outcome) {
	g.limiter.Settle(r, d, o)
	a, ok := d.Note.(*attempt)
	if !ok || !a.settled.CompareAndSwap(false, true) {
		return
	}
	g.judging.end(a)
	switch {
	case g.config.succeeded(r, o):
		// That the store does not answer has been said once, by package resilient.
		if err := g.memory.remember(a); err != nil && !errors.Is(err, resilient.ErrDown) {
			g.config.Log.Warn("login: an address could not be remembered", "error", err)
		}
		g.tell(a, EventSucceeded, d)
	case o.Canceled && !o.Panicked:
		g.tell(a, EventCanceled, d)
	case g.config.failed(r, o):
		g.tell(a, EventFailed, d)
	}
}

// refuse is the standard OnDisallowed: the standard denial without the names of
// limits, which tell strangers more than they need.
func refuse(r core.Request, d core.Decision) core.Denial {
	denial := core.DefaultHooks{}.OnDisallowed(r, d)
	if d.Reason == core.ReasonOverLimit {
		denial.Body = []byte(`{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"Too many attempts to log in. Try again later."}`)
	}
	return denial
}
