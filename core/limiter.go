package core

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limiter decides on requests, or on keys directly. It is made by [New]. All
// its methods may be called concurrently.
type Limiter struct {
	current  atomic.Pointer[snapshot]
	sessions sync.Pool
	counts   *counters
	keeper   leaseKeeper

	reconfigure sync.Mutex // one Reconfigure at a time
	generations uint64     // of limits; changes under reconfigure
	store       Store
	lines       lines // they stay when the configuration changes
}

// snapshot is one configuration of a limiter. Nothing of it that decides ever changes: a request is
// decided, charged and settled by one and the same.
type snapshot struct {
	name      string
	rules     []compiledRule
	index     map[string]int // of the rules, by name; nil if they are few
	choose    func([]int, Request) ([]int, error)
	bound     Bound
	memory    *memoryBound // bound if it is of this type, else nil
	now       func() int64 // memory's clock
	hooks     Hooks
	plain     bool         // the hooks are DefaultHooks: no extra, and a cost of 1
	log       *slog.Logger // nil: slog.Default()
	named     atomic.Pointer[namedLog]
	policy    string // the RateLimit-Policy field of all limits
	mixed     bool   // these limits do not all have the same headers
	dryRun    bool
	settles   bool         // a rule wants to know the outcome
	estimates bool         // a rule has a Cost
	simple    bool         // see checksSingle; bound is a memoryBound
	quick     *memoryBound // memory, if Allow may ask it without a Decision
	observer  *observing   // nil: none
	timed     bool         // the observer wants to know how long the store takes

	leases  bool          // a rule has a limit of Leases
	lease   time.Duration // the shortest of these
	leaser  Leaser        // bound, if leases
	shared  bool          // leases end if they are not renewed
	limiter *Limiter

	denyUnreadable bool

	saidAboveQuota, saidNoHits atomic.Bool // the log has a line

	waits           bool // a request may wait in Check
	maxWaiters      int
	maxWaitersTotal int
}

var _ Checker = (*Limiter)(nil)

// New returns a limiter. The error reports everything that is wrong with the
// configuration at once; it wraps [ErrConfig] and names fields and values.
func New(c Config) (*Limiter, error) {
	s, err := c.compile()
	if err != nil {
		return nil, err
	}
	store := c.Store
	if store == nil {
		if store, err = NewMemory(MemoryConfig{}); err != nil {
			return nil, err
		}
	}
	counts := new(counters)
	if err := s.observedBy(c.Observer, &counts.panicked); err != nil {
		return nil, err
	}
	bound, err := store.Bind(s.name, s.storeRules(store))
	if err != nil {
		return nil, err
	}
	if err := s.bindTo(store, bound); err != nil {
		return nil, err
	}
	s.bindObserver()
	return newLimiter(store, counts, s), nil
}

// bindTo makes the snapshot count in b. The error says that b does not count leases.
func (s *snapshot) bindTo(store Store, b Bound) error {
	s.bound = b
	if err := s.bindLeases(store, b); err != nil {
		return err
	}
	if s.memory, _ = b.(*memoryBound); s.memory != nil {
		s.bindSingles()
	}
	s.simple = s.memory != nil && s.checksSingle()
	return nil
}

// bindObserver notes what follows from the store and the observer together.
func (s *snapshot) bindObserver() {
	if s.quick = s.memory; s.dryRun || s.observer != nil && s.observer.Decided != nil {
		s.quick = nil
	}
	s.timed = s.memory == nil && s.observer != nil && s.observer.Stored != nil
}

func newLimiter(store Store, counts *counters, s *snapshot) *Limiter {
	l := &Limiter{store: store, counts: counts}
	l.keeper.limiter, s.limiter = l, l
	l.sessions.New = func() any { return &session{stripe: counts.stripe(), failures: &counts.failures, keeper: &l.keeper} }
	l.current.Store(s)
	return l
}

// Must returns v, or panics if err is not nil: for package-level variables,
// as template.Must is.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (s *snapshot) storeRules(store Store) []StoreRule {
	rules := make([]StoreRule, len(s.rules))
	for i, r := range s.rules {
		rules[i] = StoreRule{Name: r.Name, Limits: r.Limits, DenyUnreadable: s.denyUnreadable}
	}
	if s.leases && private(store) {
		endless(rules)
	}
	return rules
}

// mostNamed is how many rules the error about an unknown rule names.
const mostNamed = 10

func (s *snapshot) rule(name string) (int, error) {
	if i := s.find(name); i >= 0 {
		return i, nil
	}
	known := make([]string, 0, mostNamed)
	for i := range s.rules[:min(len(s.rules), mostNamed)] {
		known = append(known, strconv.Quote(s.rules[i].Name))
	}
	if n := len(s.rules) - mostNamed; n > 0 {
		known = append(known, strconv.Itoa(n)+" more")
	}
	return 0, fmt.Errorf("limiter %q, rule %q: %w: the limiter has %s", s.name, name, ErrUnknownRule, strings.Join(known, ", "))
}

// find returns the index of a rule, -1 if there is none of that name.
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

// Traits returns what the limiter's store promises, as [TraitsOf] does.
func (l *Limiter) Traits() Traits {
	t, _ := TraitsOf(l.store) // New has checked the store
	return t
}

// Hit names a counter by its rule and key.
type Hit struct {
	Rule, Key string
	// Extra is what [Hooks.KeyExtra] adds to the keys of a request: it finds the
	// counters of such a request. "" adds nothing.
	Extra string
	// Quotas are quotas for this operation, one for each of the rule's limits, in
	// place of Limit.Quota: see Rule.Quota. nil: the limits' own.
	Quotas []int64
}

// Take charges cost hits to every counter named, or to none if one of their
// limits denies them. A cost of 0 looks without charging and is always allowed.
// A counter named twice is charged once. Without hits, nothing is charged, and the decision is Allowed with
// ReasonNoRule. The error is nil if the store gave
// an answer, yes or no; it wraps ErrUnknownRule or ErrNegativeCost, or ErrUnsupported if
// a rule has a limit of [Leases], which need [Limiter.Acquire], or is the
// store's, and then the decision has Reason Failed and is not Allowed.
//
// The hits stay charged if ctx ends before the store has answered.
func (l *Limiter) Take(ctx context.Context, cost int64, hits ...Hit) (d Decision, err error) {
	err = l.takeFor(ctx, cost, charging, hits, &d)
	return d, err
}

// Peek gives the decision that Take would give now, and charges nothing.
func (l *Limiter) Peek(ctx context.Context, cost int64, hits ...Hit) (d Decision, err error) {
	err = l.takeFor(ctx, cost, peeking, hits, &d)
	return d, err
}

func (l *Limiter) takeFor(ctx context.Context, cost int64, what purpose, hits []Hit, d *Decision) error {
	s := l.current.Load()
	if len(hits) == 1 && (l.takeSingle(ctx, s, cost, what, &hits[0], d) || what == acquiring && l.acquireSingle(ctx, s, &hits[0], d)) {
		return nil
	}
	return l.takeLong(ctx, s, cost, what, hits, d)
}

// takeLong is takeFor for the hits on which takeSingle cannot decide.
func (l *Limiter) takeLong(ctx context.Context, s *snapshot, cost int64, what purpose, hits []Hit, d *Decision) error {
	peek := what == peeking
	if len(hits) == 0 && s.saidNoHits.CompareAndSwap(false, true) {
		s.logger().LogAttrs(ctx, slog.LevelWarn, "floodgate: Take without hits allows everything and charges nothing: give it a core.Hit for each counter")
	}
	c := l.session(s)
	err := c.takeHits(ctx, cost, what, hits, d)
	if s.dryRun && d.Reason == ReasonOverLimit {
		d.Allowed, d.DryRun = true, true
	}
	if peek {
		l.release(c, nil) // no request was allowed or denied
	} else {
		l.release(c, d)
		if s.observer != nil {
			s.observer.decided(ctx, d)
		}
	}
	return err
}

// takeHits decides on hits.
func (c *session) takeHits(ctx context.Context, cost int64, what purpose, hits []Hit, d *Decision) error {
	c.cost = cost
	peek := what == peeking
	err := c.addHits(cost, hits)
	if err == nil && c.snap.leases && what == charging {
		err = c.needsAcquire()
	}
	if err == nil && len(c.items) > 0 {
		if err = c.take(ctx, peek); err != nil && !peek {
			c.reportStore(ctx, "take", err)
		}
	}
	if err != nil {
		c.fail(ctx, d, err)
		return err
	}
	c.decide(d)
	c.remember(ctx, d, peek, hits)
	return nil
}
