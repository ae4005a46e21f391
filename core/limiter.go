package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limiter decides on requests, or on keys directly. Its methods may be called concurrently. Their
// errors wrap [ErrUnknownRule] or [ErrConfig], or are the store's.
type Limiter struct {
	current  atomic.Pointer[snapshot]
	sessions sync.Pool
	store    Store
	lines    lines // they stay when the configuration changes
	failures failureLog

	reconfigure sync.Mutex // one Reconfigure at a time
}

// snapshot is one configuration of a limiter. It never changes: a request is decided, charged and
// settled by the same snapshot.
type snapshot struct {
	name     string
	rules    []compiledRule
	index    map[string]int // of the rules, by name; nil if they are few
	all      []int          // the indexes of all rules
	rulesFor func([]int, Request) ([]int, error)
	counters Counters
	memory   *memoryCounters // counters if they are of this type, else nil
	hooks    Hooks
	plain    bool         // the hooks are DefaultHooks: no extra, and a cost of 1
	log      *slog.Logger // nil: slog.Default()
	policy   string       // the RateLimit-Policy field of all limits
	mixed    bool         // not all rules have the same headers
	dryRun   bool
	observer ObserverFuncs

	denyUnreadable bool
	settles        bool // a rule has a Cost, Counts or Clears
	waits          bool // a request may wait in Check
	maxWaiters     int
}

var _ Checker = (*Limiter)(nil)

// New returns a limiter. The error reports everything that is wrong with the configuration: see
// [ErrConfig].
func New(c Config) (*Limiter, error) {
	s, err := c.compile()
	if err != nil {
		return nil, err
	}
	l := &Limiter{store: c.Store, lines: lines{of: map[lineKey]*line{}}}
	if l.store == nil {
		l.store = Must(NewMemory(MemoryConfig{}))
	}
	l.sessions.New = func() any {
		return &session{failures: &l.failures}
	}
	counters, err := l.store.Open(s.name, s.storeRules())
	if err != nil {
		return nil, err
	}
	l.use(s, counters, c.Observer)
	return l, nil
}

// use puts a configuration in force.
func (l *Limiter) use(s *snapshot, c Counters, o Observer) {
	s.counters = c
	s.memory, _ = c.(*memoryCounters)
	if o != nil { // last, so that no observer hears of rules that do not come into force
		rules := make([]Rule, len(s.rules))
		for i := range s.rules {
			rules[i] = s.rules[i].Rule
		}
		s.observer = o.Observe(s.name, rules)
	}
	l.current.Store(s)
}

// Must returns v, or panics if err is not nil.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Reconfigure replaces the configuration for later requests. Requests that run or wait keep theirs,
// and later ones still queue behind those that wait. Counters keep their counts as
// [Counters].Reopen says: a quota may change. The name and the store cannot change: leave them
// empty, or as they are. After an error nothing has changed.
func (l *Limiter) Reconfigure(c Config) error {
	l.reconfigure.Lock()
	defer l.reconfigure.Unlock()
	old := l.current.Load()
	if c.Name == "" {
		c.Name = old.name
	}
	if c.Name != old.name {
		return fmt.Errorf("%w: Name: %q: cannot change from %q", ErrConfig, c.Name, old.name)
	}
	if c.Store != nil && !same(c.Store, l.store) {
		return fmt.Errorf("%w: Store: %T: cannot change", ErrConfig, c.Store)
	}
	s, err := c.compile()
	if err != nil {
		return err
	}
	counters, err := old.counters.Reopen(s.storeRules())
	if err != nil {
		return err
	}
	l.use(s, counters, c.Observer)
	return nil
}

// same reports whether a and b are one store. Non-comparable stores are never equal.
func same(a, b Store) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

func (s *snapshot) storeRules() []StoreRule {
	rules := make([]StoreRule, len(s.rules))
	for i := range s.rules {
		rules[i] = StoreRule{Name: s.rules[i].Name, Limits: s.rules[i].Limits, DenyUnreadable: s.denyUnreadable}
	}
	return rules
}

// find returns the index of a rule, -1 if no rule has the name.
func (s *snapshot) find(name string) int {
	if s.index != nil {
		if i, known := s.index[name]; known {
			return i
		}
		return -1
	}
	for i := range s.rules {
		if s.rules[i].Name == name {
			return i
		}
	}
	return -1
}

// Name returns the limiter's name.
func (l *Limiter) Name() string { return l.current.Load().name }

// Guarantees returns what the limiter's store promises.
func (l *Limiter) Guarantees() Guarantees { return l.store.Guarantees() }

// Hit names a counter by its rule and key.
type Hit struct {
	Rule, Key string
	// Extra is the text that [Hooks].KeyExtra adds to the keys of a request, or "".
	Extra string
	// Quotas replace Limit.Quota for this operation, one for each limit of the rule: see
	// Rule.Quota.
	Quotas []int64
}

// Take charges cost hits to every counter named, or to none if a limit denies them. A counter
// named twice is charged once. A cost of 0 changes nothing. Without hits, the decision is Allowed
// with ReasonNoRule.
//
// The error is nil if the store decided, even if it denied. With an error, the decision has
// ReasonFailed, or ReasonCanceled if ctx was canceled, and is not Allowed.
//
// Hits stay charged if ctx ends before the store answers.
func (l *Limiter) Take(ctx context.Context, cost int64, hits ...Hit) (d Decision, err error) {
	c := l.session(l.current.Load())
	err = c.takeAll(ctx, cost, hits, nil, &d)
	l.end(ctx, c, &d)
	return d, err
}

// Wait is [Limiter.Take] for workers: it waits until it can charge the hits, as long as ctx
// allows. The decision is Allowed if the error is nil.
//
// In a process, requests of Wait, and of Check with a MaxWait, are allowed first come, first served,
// in a line for each key of a rule. Others do not queue, and may overtake. The first in line asks
// the store again after RetryAfter, and at once after Adjust, Settle, Grant, Reset, ResetAll or
// Block of this limiter. A request with several keys stands in one line at a time. If two of its
// keys always have a line, it may never be allowed.
//
// A request is denied at once if the hits before it, at one quota a window, need longer than it has.
// Then RetryAfter is an estimate. Others may be denied when their time is over, with a RetryAfter of
// 1 ms.
//
// The error wraps [ErrWaitTooLong] if the deadline of ctx is too early or the cost is more than a
// quota, [ErrLineFull] if too many are waiting, and [context.Canceled] if ctx is canceled in line.
// Then nothing is charged. Other errors are those of Take, also if ctx ends while the store is asked.
func (l *Limiter) Wait(ctx context.Context, cost int64, hits ...Hit) (d Decision, err error) {
	s := l.current.Load()
	if s.dryRun || len(hits) == 0 || cost <= 0 { // never denied
		return l.Take(ctx, cost, hits...)
	}
	c := l.session(s)
	t := turn{session: c, lines: &l.lines, ctx: ctx, worker: true}
	err = c.takeAll(ctx, cost, hits, &t, &d)
	t.finish(&d)
	l.end(ctx, c, &d)
	if err == nil && !d.Allowed {
		err = fmt.Errorf("limiter %q, rule %q: %w", s.name, d.Rule(), t.why)
	}
	return d, err
}

// takeAll charges the hits: in turn t for Wait, at once if t is nil.
func (c *session) takeAll(ctx context.Context, cost int64, hits []Hit, t *turn, d *Decision) error {
	err := c.addHits(cost, hits)
	if err == nil {
		what := "take"
		if t != nil {
			what, err = "wait", t.take()
		} else {
			err = c.do(ctx, OpTake)
		}
		if err != nil {
			c.reportStore(ctx, what, err)
		}
	}
	if err != nil {
		c.fail(ctx, d, err)
		return err
	}
	c.decideHits(d)
	return nil
}

// decideHits fills d for a call that names hits. A dry run allows what a limit denies.
func (c *session) decideHits(d *Decision) {
	d.direct = true
	c.decide(d)
	if c.snap.dryRun && d.Reason == ReasonOverLimit {
		d.Allowed, d.DryRun = true, true
	}
}

// Allow is Take(ctx, 1, hits...).Allowed. If the limiter cannot decide, it returns false and logs
// the error.
func (l *Limiter) Allow(ctx context.Context, hits ...Hit) bool {
	d, err := l.Take(ctx, 1, hits...)
	if errors.Is(err, ErrUnknownRule) || errors.Is(err, ErrConfig) { // Take logs the store's errors
		l.failures.report(ctx, l.current.Load(), callFailure, "allow", "", err)
	}
	return d.Allowed
}

// Peek returns the decision that Take would make, without a charge.
func (l *Limiter) Peek(ctx context.Context, cost int64, hits ...Hit) (d Decision, err error) {
	return l.look(ctx, OpPeek, cost, cost, hits)
}

// look runs OpPeek or OpGrant and returns the decision on cost. n is the cost of the items.
func (l *Limiter) look(ctx context.Context, op Op, n, cost int64, hits []Hit) (d Decision, err error) {
	s := l.current.Load()
	c := l.session(s)
	defer l.release(c)
	if err = c.addHits(n, hits); err == nil && op == OpGrant {
		err = c.grantable()
	}
	if err == nil {
		err = c.do(ctx, op)
	}
	if err != nil {
		c.fail(ctx, &d, err)
		return d, err
	}
	if op == OpGrant {
		l.lines.freed(s, c.batch.Items)
	}
	c.cost = cost
	for i := range c.batch.Items {
		c.batch.Items[i].Cost = cost
	}
	c.decideHits(&d)
	return d, nil
}

// Grant gives n hits back, 1 to MaxQuota, to every counter named: see [OpGrant]. A key never has
// more left than its quota or burst. A rule that has a limit with a [Lockout] is an error.
//
// The decision is that of a Peek with cost 0 afterwards. After an error of the store, the hits may
// have been granted, unless it wraps [ErrNotCharged]. The end of ctx does not stop a grant.
func (l *Limiter) Grant(ctx context.Context, n int64, hits ...Hit) (d Decision, err error) {
	if n < 1 || n > MaxQuota {
		err = fmt.Errorf("%w: limiter %q: granting %d hits: must be from 1 to %d", ErrConfig, l.Name(), n, int64(MaxQuota))
		return Decision{Reason: ReasonFailed, Err: err, snap: l.current.Load(), rule: -1}, err
	}
	return l.look(context.WithoutCancel(ctx), OpGrant, n, 0, hits)
}

// grantable returns an error if no hits can be granted to one of the items.
func (c *session) grantable() error {
	for i := range c.batch.Items {
		r := &c.snap.rules[c.batch.Items[i].Rule]
		if i := slices.IndexFunc(r.Limits, func(l Limit) bool { return !l.Lockout.none() }); i >= 0 {
			return fmt.Errorf("%w: limiter %q, rule %q, limit %q: granting hits: it has a Lockout: Reset ends its wait", ErrConfig, c.snap.name, r.Name, r.Limits[i].Name)
		}
	}
	return nil
}

// Block denies the counters named for d, 0 to MaxWindow, in every process that shares the store.
// Until then no hits are left, and RetryAfter is at least the rest of d. A d of 0 or a Reset ends
// the block. If all MaxKeys keys of a [Memory] are blocked, the block that ends first is dropped.
func (l *Limiter) Block(ctx context.Context, d time.Duration, hits ...Hit) error {
	if d < 0 || d > MaxWindow {
		return fmt.Errorf("%w: limiter %q: blocking for %v: must be from 0 to 366 days", ErrConfig, l.Name(), d)
	}
	return l.act(ctx, OpBlock, (d + time.Microsecond - 1).Truncate(time.Microsecond), hits)
}

// Reset removes the counters named.
func (l *Limiter) Reset(ctx context.Context, hits ...Hit) error {
	return l.act(ctx, OpReset, 0, hits)
}

// act runs an operation without a decision.
func (l *Limiter) act(ctx context.Context, op Op, d time.Duration, hits []Hit) error {
	s := l.current.Load()
	c := l.session(s)
	defer l.release(c)
	if err := c.addHits(0, hits); err != nil {
		return err
	}
	defer l.lines.freed(s, c.batch.Items)
	c.batch.For = d
	return c.do(ctx, op)
}

// ResetAll removes the counters of all keys of all rules, in every process that shares the store.
func (l *Limiter) ResetAll(ctx context.Context) error {
	c := l.session(l.current.Load())
	defer l.release(c)
	defer l.lines.freed(c.snap, nil)
	return c.do(ctx, OpResetAll)
}
