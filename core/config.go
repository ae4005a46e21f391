package core

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Rule is a key function and the limits that apply to each of its keys.
type Rule struct {
	// Name names the rule's counters in the store, and the rule in decisions: 1 to
	// 64 of the characters A-Z a-z 0-9 _ . -, unique in the limiter. If the
	// limiter has only one rule, it may be empty, which means "default".
	Name string
	// Key returns the key of the counter that a request belongs to: see package
	// keyfuncs. nil: the rule applies to no request; only Take and the other
	// methods of a Limiter that name counters use it.
	Key KeyFunc
	// Limits apply to each key, all of them: 1 to MaxLimits, no two with the
	// same algorithm, window, precision and alignment.
	Limits []Limit
	// Cost returns how many hits a request is worth to the rule, 0 or more. It
	// is asked for requests to which the rule applies, twice if it reads the
	// body. Its errors mean what those of Hooks.Cost mean. The handler may say later what
	// the request has really cost: see [Decision.SetCost]. nil: Hooks.Cost, which SetCost does
	// not settle.
	Cost func(Request) (int64, error)
	// Quota returns the quota of a request for one of the rule's limits, in place of
	// Limit.Quota: the plan of a customer, for instance. It returns 0 (none) to
	// MaxQuota, of a SlidingLog to MaxLogQuota, or [Unlimited]: then the limit counts
	// the request and never denies it. The burst of a TokenBucket changes in
	// proportion. Counts stay, so that a new plan acts on the next request.
	//
	// If the rule applies to a request, Quota is called for each limit, whose Name is
	// filled in; twice if it reads the body. It may be called concurrently. An error
	// that wraps ErrBadRequest means what it means for a KeyFunc. After any other
	// error, or a number that is out of range, the answer is 503, nothing is charged,
	// and Config.Log gets a line. nil: the limit's Quota.
	Quota func(Request, Limit) (int64, error)
	// MaxWait is how long a request may wait for its turn if the rule would deny it:
	// see Config.MaxWait. 0: Config.MaxWait.
	MaxWait time.Duration
	// Headers chooses the rate limit headers of the rule's limits. 0:
	// Config.Headers.
	Headers Headers
	// Counts reports, after the handler, whether the hits of a request stay
	// charged; false gives them back. It gets the request that was decided on,
	// and what became of it. nil: all requests count.
	Counts func(Request, Outcome) bool
	// Clears reports, after the handler, whether the key is forgotten: a login
	// that succeeded ends a row of failures. It is asked about requests that were
	// charged. nil: no request clears the key.
	Clears func(Request, Outcome) bool
}

// MaxLimits is the most limits that a rule can have, and MaxRules the most
// rules of a limiter.
const (
	MaxLimits = 16
	MaxRules  = 10_000
)

// Config is what a Limiter is made of.
type Config struct {
	// Name names the limiter's counters in the store, and the limiter in decisions:
	// 1 to 64 of the characters A-Z a-z 0-9 _ . -. Limiters that share a store
	// need different names. Required if the Store is shared with other
	// processes; otherwise empty means "default".
	Name string
	// Rules are decided on together: a request is charged to all of them, or to
	// none if one of them denies it. 1 to MaxRules.
	Rules []Rule
	// RulesFor appends to dst the indexes of the rules that apply to a request, in
	// ascending order, and returns the longer slice. The key functions of the
	// other rules are not called, so that many rules cost a request nothing. Its
	// errors mean what a KeyFunc's errors mean. It may be called twice for a
	// request, and concurrently. nil: all rules, of which some may return
	// SkipRule.
	RulesFor func(dst []int, r Request) ([]int, error)
	// Store holds the counters. nil: a Memory of the limiter's own, with the
	// default MemoryConfig.
	Store Store
	// DenyUnreadable makes the Store deny a key whose stored value it cannot read:
	// see [StoreRule]. Set it if the limiter guards secrets.
	DenyUnreadable bool
	// Hooks change what the limiter does. nil: DefaultHooks.
	Hooks Hooks
	// Headers chooses the rate limit headers of responses.
	Headers Headers
	// Log gets one line, and no second one, if the first hundred requests of a rule have
	// had no key, if a request costs more than a quota, or if Take gets no hits.
	// It gets a line each time that a store, a key function, a quota function or a hook
	// fails, or that Allow names an unknown rule. Such a line has the names of the limiter
	// and the rules, and the error. There is at most one a second for each of the five
	// kinds, and it has the number of failures that were left out since the line before.
	// Keys are not logged. The texts of errors are. nil: slog.Default().
	Log *slog.Logger
	// Observer is told of every decision: see [ObserverFuncs]. nil: nobody is, and it
	// costs nothing.
	Observer Observer
	// DryRun makes the limiter decide, count and report as always, and allow
	// every request. The decision on a request that would have been denied has
	// DryRun set, and is given to Hooks.OnDisallowed, whose result is not used.
	// Responses have the limiter's headers: set HeadersOff if clients should not
	// see them.
	DryRun bool
	// MaxWait is how long a request that would be denied may wait for its turn in
	// Check: 0, or MinWindow to MaxWindow. See [Limiter.Wait] for the order, and
	// for what is denied at once. The others wait: some of them until MaxWait is over, to
	// be denied then. A client that leaves is charged nothing. If a rule without MaxWait
	// denies the request too, it is denied when it is its turn. A request whose key is
	// in the body is read before it waits. A DryRun makes no request wait. 0: requests do
	// not wait, except for rules with a MaxWait of their own. The Shutdown of a server
	// waits for the requests that wait.
	MaxWait time.Duration
	// MaxWaiters is the most requests that wait for one key of a rule, and
	// MaxWaitersTotal the most that wait for all keys of the limiter, in this process:
	// 1 to 1,000,000. One more is denied at once. 0 means 100 and 10,000.
	MaxWaiters, MaxWaitersTotal int
}

// compiledRule is a checked Rule with its limits' names filled in.
type compiledRule struct {
	Rule
	leases  bool          // it has a limit of Leases
	keyless *atomic.Int32 // see skipped
}

// compile checks the configuration and reports everything that is wrong.
func (c Config) compile() (*snapshot, error) {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &fieldError{field, fmt.Sprintf(format, args...)})
	}
	s := &snapshot{name: c.Name, hooks: c.Hooks, rulesFor: c.RulesFor, log: c.Log, dryRun: c.DryRun, denyUnreadable: c.DenyUnreadable}
	promised := Guarantees{Ops: AllOps}
	if c.Store != nil {
		if err := checkStore(c.Store); err != nil {
			errs = append(errs, err)
		} else {
			promised = c.Store.Guarantees()
		}
		if c.Name == "" && promised.Shared {
			bad("Name", "\"\": a shared store needs a name, such as \"api\": limiters of one name count together in all programs that use the store (%T)", c.Store)
		}
	}
	if s.name == "" {
		s.name = "default"
	}
	if !validName(s.name) {
		bad("Name", "%q: %s", c.Name, nameRule)
	}
	if s.hooks == nil {
		s.hooks = DefaultHooks{}
	}
	_, s.plain = s.hooks.(DefaultHooks)
	if field := nilHooks(s.hooks); field != "" {
		bad("Hooks", "%T: the embedded %s is nil", s.hooks, field)
	}
	if err := c.Headers.check(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.checkWaits(s))
	if n := len(c.Rules); n == 0 || n > MaxRules {
		bad("Rules", "%d of them: must be 1 to %d, such as {Name: \"ip\", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(60)}}", n, MaxRules)
	}
	names, limitNames := map[string]bool{}, map[string]string{}
	var twin Headers // the form of RateLimit that twinRule writes, 0 if none does yet
	var twinRule string
	if len(c.Rules) > indexedRules {
		s.index = make(map[string]int, len(c.Rules))
	}
	for i, r := range c.Rules {
		at := "Rules[" + strconv.Itoa(i) + "]"
		if r.Name == "" && len(c.Rules) == 1 {
			r.Name = "default"
		}
		if names[r.Name] {
			bad(at+".Name", "%q: two rules have this name", r.Name)
		}
		names[r.Name] = true
		if r.Name == "" {
			errs = append(errs, within(at, r.check()))
		} else {
			errs = append(errs, within(at+" ("+strconv.Quote(r.Name)+")", r.check()))
		}
		r.Limits = nameLimits(r)
		for _, l := range r.Limits {
			if other, taken := limitNames[l.Name]; taken {
				bad(at+".Limits", "%q: two limits have this name (the other one is of rule %q)", l.Name, other)
			}
			limitNames[l.Name] = r.Name
			if l.Algorithm == Leases && promised.Ops&OpRelease == 0 {
				bad(at+".Limits", "%q: %v: the store cannot count what is in flight (%T)", l.Name, Leases, c.Store)
			}
		}
		if r.Headers == 0 {
			r.Headers = c.Headers
		}
		if r.MaxWait == 0 {
			r.MaxWait = c.MaxWait
		}
		if t := r.Headers.twin(); t != 0 {
			if twin != 0 && twin != t {
				bad(at+".Headers", "HeadersDraft07 and HeadersDraft10, the default, in one limiter (rule %q has the other one): both write RateLimit and RateLimit-Policy; choose one of them in Config.Headers", twinRule)
			}
			twin, twinRule = t, r.Name
		}
		s.add(r)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s.policy = s.policyField()
	return s, nil
}

// indexedRules is the number of rules above which a map finds one sooner by its
// name than a loop.
const indexedRules = 8

// add adds a rule that has been checked.
func (s *snapshot) add(r Rule) {
	i := len(s.rules)
	s.rules, s.all = append(s.rules, compiledRule{Rule: r, keyless: new(atomic.Int32), leases: hasLeases(r.Limits)}), append(s.all, i)
	s.mixed = s.mixed || r.Headers != s.rules[0].Headers
	if s.index != nil {
		s.index[r.Name] = i
	}
	s.addLeases(r.Limits)
	s.settles = s.settles || r.Cost != nil || r.Counts != nil || r.Clears != nil
	s.waits = s.waits || r.MaxWait > 0 && !s.dryRun
}

// check reports everything that is wrong with the rule by itself.
func (r Rule) check() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &fieldError{field, fmt.Sprintf(format, args...)})
	}
	if !validName(r.Name) {
		bad("Name", "%q: %s", r.Name, nameRule)
	}
	if err := r.Headers.check(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, checkMaxWait(r.MaxWait))
	if n := len(r.Limits); n == 0 || n > MaxLimits {
		bad("Limits", "%d of them: must be 1 to %d", n, MaxLimits)
	}
	for j, l := range r.Limits {
		at := "Limits[" + strconv.Itoa(j) + "]"
		errs = append(errs, within(at, l.Validate()))
		if l.Algorithm == Leases && r.Clears != nil {
			bad(at, "%v: a rule with Clears has no limit of in_flight: clearing a key would free the slots of requests that still run; put this limit into a rule of its own", l)
		}
		if k := slices.IndexFunc(r.Limits[:j], func(o Limit) bool { return o.meter().Identity() == l.meter().Identity() }); k >= 0 {
			bad(at, "%v: counts the same as Limits[%d], %v: only their quotas differ", l, k, r.Limits[k])
		} else if k := slices.IndexFunc(r.Limits[:j], func(o Limit) bool { return o.Algorithm == Leases }); l.Algorithm == Leases && k >= 0 {
			bad(at, "%v: a rule has one limit of in_flight, and Limits[%d] is %v", l, k, r.Limits[k])
		}
	}
	return errors.Join(errs...)
}

// fieldError is one thing that is wrong with a configuration.
type fieldError struct {
	field   string // its path, such as Rules[0].Name
	problem string // the value, and what is wrong with it
}

// Error implements error.
func (e *fieldError) Error() string { return ErrConfig.Error() + ": " + e.field + ": " + e.problem }

// Unwrap makes the error an [ErrConfig].
func (e *fieldError) Unwrap() error { return ErrConfig }

// within puts the path of a part of a configuration before the fields that err,
// of that part, names.
func within(path string, err error) error {
	return eachError(err, func(one error) error {
		if e, ok := one.(*fieldError); ok { //nolint:errorlint // an error that wraps one has the path already
			return &fieldError{path + "." + e.field, e.problem}
		}
		return fmt.Errorf("%s: %w", path, one)
	})
}

// eachError returns f of err, or, if err joins several errors, f of each of
// them: what f adds is then on every line of the text.
func eachError(err error, f func(error) error) error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return f(err)
	}
	var errs []error
	for _, one := range joined.Unwrap() {
		errs = append(errs, eachError(one, f))
	}
	return errors.Join(errs...)
}

// nameLimits returns the rule's limits with their names and the defaults of their
// lockouts filled in.
func nameLimits(r Rule) []Limit {
	limits := slices.Clone(r.Limits)
	for i := range limits {
		l := &limits[i]
		if !l.Lockout.none() {
			l.Lockout = l.Lockout.filled()
		}
		if l.Name != "" {
			continue
		}
		l.Name = r.Name
		if len(limits) > 1 {
			l.Name += "-" + l.windowName()
			taken := func(o Limit) bool { return o.Name == l.Name }
			if slices.ContainsFunc(limits[:i], taken) {
				l.Name += "-" + l.Algorithm.String()
			}
			if slices.ContainsFunc(limits[:i], taken) {
				l.Name += "-" + strconv.Itoa(i+1)
			}
		}
	}
	return limits
}

// The defaults of Config.MaxWaiters and MaxWaitersTotal, and the most that they can be.
const (
	defaultMaxWaiters      = 100
	defaultMaxWaitersTotal = 10_000
	mostWaiters            = 1_000_000
)

// checkWaits reports what is wrong with the waits of a limiter, and notes in s how many
// requests may wait.
func (c *Config) checkWaits(s *snapshot) error {
	errs := []error{checkMaxWait(c.MaxWait)}
	for _, n := range []struct {
		field     string
		value     int
		otherwise int
		to        *int
	}{
		{"MaxWaiters", c.MaxWaiters, defaultMaxWaiters, &s.maxWaiters},
		{"MaxWaitersTotal", c.MaxWaitersTotal, defaultMaxWaitersTotal, &s.maxWaitersTotal},
	} {
		if *n.to = n.value; n.value == 0 {
			*n.to = n.otherwise
		}
		if n.value < 0 || n.value > mostWaiters {
			errs = append(errs, &fieldError{n.field, fmt.Sprintf("%d: must be from 1 to %d, or 0 for %d", n.value, mostWaiters, n.otherwise)})
		}
	}
	return errors.Join(errs...)
}

func checkMaxWait(d time.Duration) error {
	if d < 0 || d > MaxWindow {
		return &fieldError{"MaxWait", fmt.Sprintf("%v: must be from 0 to 366 days", d)}
	}
	if 0 < d && d < MinWindow {
		return &fieldError{"MaxWait", fmt.Sprintf("%v: must be 0, or from %v to 366 days: a number without a unit counts nanoseconds, so write 2*time.Second for 2 seconds", d, MinWindow)}
	}
	return nil
}
