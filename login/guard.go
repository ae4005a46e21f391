package login

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// Guard limits the attempts on a login form. [NewGuard] makes it. It is a [core.Checker], which the
// Middleware of every adapter accepts. Its methods may be called concurrently.
//
// With the default limits, if an attacker guesses every second, this many guesses reach the
// handler in a day (measured by TestADayOfGuessing):
//
//	one address, one account                            150
//	the same, logging in to its own account in between  150
//	the same, giving up each fifth request              150
//	the same, asking for the form with GET and a body   150
//	one address, 1000 accounts                       28,800 (20 a minute)
//	1000 addresses, one account                       2,300 (at most 100 an hour)
//	1000 addresses with a stolen cookie each, or
//	known for the account                             3,450 (at most 150 an hour)
//	one address, one stolen cookie                      270
//	the same, after Forget                              150
//	Basic authentication, 30 requests at once           150
//	the owner's address, while the owner logs in every
//	10 minutes, also with Basic authentication          720 (5 after each login)
type Guard struct {
	config  Config
	limiter *core.Limiter
	memory  memory
	hashKey []byte // of events
	close   func() error
	slots   *inflight.Limiter

	failed    atomic.Bool   // an attempt has failed
	succeeded atomic.Uint64 // attempts with a form, before the first that has failed
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
	g := &Guard{config: c, hashKey: hashKey(c.Secrets), close: closeStore}
	g.limiter, err = core.New(core.Config{
		Name:    c.Name,
		Rules:   g.rules(),
		Store:   store,
		Headers: core.HeadersOff, // they would show strangers the state of an account
		// Damaging a counter must not give an attacker a new quota.
		DenyUnreadable: true,
		Log:            c.Log,
		Observer:       c.Observer,
		Hooks:          hooks{guard: g},
	})
	if err == nil {
		g.memory, err = openMemory(&g.config, store)
	}
	if err == nil {
		g.slots, err = newSlots(&g.config)
	}
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	return g, nil
}

// Close closes the counters that the guard keeps in this process. It does not close Config.Store.
// After Close, the guard denies attempts that need these counters with 503.
func (g *Guard) Close() error { return g.close() }

// Guarantees returns what the guard's store promises: see [core.Limiter.Guarantees].
func (g *Guard) Guarantees() core.Guarantees { return g.limiter.Guarantees() }

// hooks are those of the guard's limiter.
type hooks struct {
	core.DefaultHooks
	guard *Guard
}

// ShouldLimit returns false for a request that cannot be an attempt: its method is not in
// Config.Methods, it has no body, and no source finds a username in it or returns an error, as it
// would if the query had the username. A request with a body may be an attempt whatever its method
// is, because a middleware before or behind the guard may override the method.
func (h hooks) ShouldLimit(r core.Request) bool {
	if h.guard.config.logsIn(r) {
		return true
	}
	body, err := r.Body(1)
	return err != nil || len(body) > 0 || h.guard.config.names(r)
}

// logsIn reports whether the method of a request is one that logs in.
func (c *Config) logsIn(r core.Request) bool { return slices.Contains(c.Methods, r.Method()) }

// Check decides whether an attempt may reach the handler, and charges for it. It
// implements [core.Checker]. It waits if the authentication is Basic: see [BasicUser].
//
// The limiter makes one decision. Its key functions find the account, then whether the client
// is trusted, and then choose the limits.
func (g *Guard) Check(r core.Request) (d core.Decision) {
	a := &attempt{Request: r, guard: g}
	settles := false
	defer func() {
		if !settles { // also if a hook or key function has panicked
			g.slots.Settle(a, a.slot, core.Outcome{}) // does nothing without a slot
		}
	}()
	d = g.limiter.Check(a)
	if d.Reason == core.ReasonSkipped {
		return d
	}
	d.SetNote(a)
	switch d.Reason {
	case core.ReasonOverLimit:
		g.report(a, EventDenied, d)
	case core.ReasonWithinLimits:
		g.suspect(a, &d)
	}
	settles = d.Allowed
	return d
}

// suspect sets the attempt's suspicion. If the account is suspicious and the client is
// a stranger, it calls OnSuspicion, which may deny the attempt.
func (g *Guard) suspect(a *attempt, d *core.Decision) {
	for s := range d.Limits() {
		if s.Rule == ruleAccount {
			a.suspicion.Limit = s.Limit.Capacity()
			a.suspicion.Failures = a.suspicion.Limit - s.Remaining - 1 // without this attempt
		}
	}
	if a.suspicion.Limit == 0 || a.suspicion.Failures < g.config.SuspiciousAfter {
		return
	}
	a.suspicion.Suspicious, a.suspicion.Username = true, a.account
	g.report(a, EventSuspected, *d)
	if g.config.OnSuspicion == nil {
		return
	}
	if a.denial = g.config.OnSuspicion(a.Request, a.suspicion); a.denial == nil {
		return
	}
	g.limiter.Settle(a, *d, core.Outcome{Status: int(neither)}) // the hit of the address stays
	d.Allowed, d.Reason = false, core.ReasonOverLimit
	d.RetryAfter = core.Never // no wait makes the guard allow it
	g.report(a, EventDenied, *d)
}

// Deny returns the response to an attempt that Check has denied. It implements [core.Checker].
func (g *Guard) Deny(r core.Request, d core.Decision) core.Denial { return g.limiter.Deny(r, d) }

// OnDisallowed returns the denial of OnSuspicion, or of Config.OnDisallowed. The standard denial
// is without the names of limits, which strangers need not know.
func (h hooks) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	if a, ok := d.Note().(*attempt); ok && a.denial != nil {
		return *a.denial
	}
	denial := h.DefaultHooks.OnDisallowed(r, d)
	if d.Reason == core.ReasonOverLimit {
		denial.Body = []byte(`{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"Too many attempts to log in. Try again later."}`)
	}
	if f := h.guard.config.OnDisallowed; f != nil {
		return f(r, d, denial)
	}
	return denial
}

// Settle counts the outcome of an attempt that Check has allowed. It implements [core.Checker].
func (g *Guard) Settle(r core.Request, d core.Decision, o core.Outcome) {
	a, ok := d.Note().(*attempt)
	if !ok || !a.settled.CompareAndSwap(false, true) {
		return
	}
	result := g.settle(a, r, d, o)
	switch {
	case result == success:
		if err := g.memory.remember(a.Context(), a.trust, a.address, a.account); err != nil && !errors.Is(err, resilient.ErrDown) { // which package resilient has logged
			g.config.Log.Warn("login: a client's address could not be remembered: it does not count as known for the account", "error", err)
		}
		// Requests with Basic authentication need not have failures.
		if !a.basic && !g.failed.Load() && g.succeeded.Add(1) == neverFails {
			g.config.Log.Warn("login: no attempt has failed so far. If the handler answers a wrong password with a status below 400, the guard takes it for a success and limits nobody: "+
				"answer it with 401, or set login.Config.Success", "limiter", g.config.Name, "attempts", neverFails)
		}
		g.report(a, EventSucceeded, d)
	case o.Canceled:
		g.report(a, EventCanceled, d)
	case result == failure:
		g.failed.Store(true)
		g.report(a, EventFailed, d)
	}
}

// settle judges an attempt, settles its hits and releases its slot, also if Success or Failure panics.
func (g *Guard) settle(a *attempt, r core.Request, d core.Decision, o core.Outcome) result {
	defer g.slots.Settle(a, a.slot, core.Outcome{})
	judged := g.config.judge(a, o)
	g.limiter.Settle(r, d, core.Outcome{Status: int(judged)})
	return judged
}

// neverFails is how many attempts succeed before the log says that none has failed.
const neverFails = 100
