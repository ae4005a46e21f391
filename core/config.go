package core

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Rule is a key function and the limits that apply to each of its keys.
type Rule struct {
	// Name names the rule in decisions and in the store. It has the form of Config.Name and is
	// unique in the limiter. Empty means "default", for a limiter's only rule.
	Name string
	// Key returns the key of a request: see package keyfuncs. nil: the rule is only for methods
	// that name a [Hit].
	Key KeyFunc
	// Limits apply to each key: 1 to MaxLimits. No two have the same algorithm, window, precision,
	// alignment and time zone.
	Limits []Limit
	// Cost returns the hits that a request costs in this rule. The handler can settle the real cost
	// with [Decision.SetCost]. nil: [Hooks].Cost, which SetCost does not settle.
	Cost func(Request) (int64, error)
	// Quota returns the quota of a request for one limit, such as that of a customer's plan, in the
	// range of Limit.Quota, or [Unlimited]. The burst of a TokenBucket is scaled with it. Counts
	// stay when the quota changes. Quota is called as a [KeyFunc] is, for each limit; SkipRule and
	// an invalid quota answer 503. nil: Limit.Quota.
	Quota func(Request, Limit) (int64, error)
	// MaxWait, if not 0, replaces Config.MaxWait for this rule. If several rules deny a request, it
	// waits for the shortest of their MaxWaits.
	MaxWait time.Duration
	// Headers, if not 0, replaces Config.Headers for this rule.
	Headers Headers
	// Counts reports, after the handler, whether a request stays charged. If not, its hits are
	// refunded. nil: it stays charged.
	Counts func(Request, Outcome) bool
	// Clears reports, after the handler, whether to reset the key of a charged request: a
	// successful login ends a row of failures. nil: never.
	Clears func(Request, Outcome) bool
}

// MaxLimits is the most limits of a rule, and MaxRules the most rules of a limiter.
const (
	MaxLimits = 16
	MaxRules  = 10_000
)

// Config configures a [Limiter].
type Config struct {
	// Name names the limiter in decisions and in the store, with 1 to 64 characters of A-Z a-z 0-9
	// _ . -. All instances of a limiter have the same name; other limiters of the store need other
	// names. Empty means "default", and is an error with a shared store.
	Name string
	// Rules are decided on together: a request is charged to all that apply, or to none. 1 to
	// MaxRules.
	Rules []Rule
	// RulesFor appends to dst the indexes of the rules that apply to a request, in ascending order.
	// It is called as a [KeyFunc] is, and its errors mean the same. nil: all rules.
	RulesFor func(dst []int, r Request) ([]int, error)
	// Store holds the counters. nil: a new [Memory].
	Store Store
	// DenyUnreadable denies keys whose stored value the Store cannot read: see [StoreRule].
	DenyUnreadable bool
	// Hooks change what the limiter does. nil: [DefaultHooks].
	Hooks Hooks
	// Headers chooses the rate limit headers of responses. 0: HeadersDraft10.
	Headers Headers
	// Log gets the errors of stores, hooks and functions of rules: at most one line a second of
	// each kind, with the number of lines left out. Lines contain no keys. nil: slog.Default().
	Log *slog.Logger
	// Observer sees every decision: see [ObserverFuncs]. nil: none.
	Observer Observer
	// DryRun makes the limiter decide, charge and report as always, and allow every request; Take
	// and Peek still return errors. Responses have the limiter's headers: set HeadersOff to hide
	// them.
	DryRun bool
	// MaxWait is how long Check lets a denied request wait for its turn: 0 (not at all), or
	// MinWindow to MaxWindow. [Limiter.Wait] describes the order. A DryRun never waits.
	MaxWait time.Duration
	// MaxWaiters is the most requests in this process that wait for one key of a rule: 1 to
	// 100,000. At most 100 times as many wait for all keys together. 0 means 100.
	MaxWaiters int
}

const (
	defaultMaxWaiters = 100
	mostWaiters       = 100_000
	mostLines         = 100 // MaxWaiters times this wait for all keys
)

// compiledRule is a checked Rule with its limits' names filled in.
type compiledRule struct {
	Rule
	keyless *atomic.Int32 // see skipped
}

// compile checks the configuration and reports everything that is wrong.
func (c Config) compile() (*snapshot, error) {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &fieldError{field, fmt.Sprintf(format, args...)})
	}
	s := &snapshot{name: c.Name, hooks: c.Hooks, rulesFor: c.RulesFor, log: c.Log, dryRun: c.DryRun, denyUnreadable: c.DenyUnreadable}
	if isNil(c.Store) {
		bad("Store", "%T: is nil: must be a store, or leave Store out", c.Store)
	} else if c.Name == "" && c.Store != nil && c.Store.Guarantees().Shared {
		bad("Name", "\"\": a shared store needs a name, such as \"api\": limiters of one name count together in all programs that use the store (%T)", c.Store)
	}
	if isNil(c.Observer) {
		bad("Observer", "%T: is nil: must be an observer, or leave Observer out", c.Observer)
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
	if isNil(s.hooks) {
		bad("Hooks", "%T: is nil: must be hooks, or leave Hooks out", s.hooks)
	}
	if err := c.Headers.check(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, checkMaxWait(c.MaxWait))
	if c.MaxWaiters < 0 || c.MaxWaiters > mostWaiters {
		bad("MaxWaiters", "%d: must be from 1 to %d, or 0 for %d", c.MaxWaiters, mostWaiters, defaultMaxWaiters)
	}
	if s.maxWaiters = c.MaxWaiters; s.maxWaiters == 0 {
		s.maxWaiters = defaultMaxWaiters
	}
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
		}
		if r.Headers == 0 {
			r.Headers = cmp.Or(c.Headers, HeadersDraft10)
		}
		if r.MaxWait == 0 {
			r.MaxWait = c.MaxWait
		}
		if t := r.Headers & headersTwins; t != 0 {
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

// indexedRules is the number of rules above which a map finds a rule faster than a loop.
const indexedRules = 8

// add adds a rule that has been checked.
func (s *snapshot) add(r Rule) {
	i := len(s.rules)
	s.rules, s.all = append(s.rules, compiledRule{Rule: r, keyless: new(atomic.Int32)}), append(s.all, i)
	s.mixed = s.mixed || r.Headers != s.rules[0].Headers
	if s.index != nil {
		s.index[r.Name] = i
	}
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
		if k := slices.IndexFunc(r.Limits[:j], func(o Limit) bool { return o.meter().Identity() == l.meter().Identity() }); k >= 0 {
			bad(at, "%v: counts the same as Limits[%d], %v: only their quotas differ", l, k, r.Limits[k])
		}
	}
	return errors.Join(errs...)
}

// fieldError is one error of a configuration.
type fieldError struct {
	field   string // its path, such as Rules[0].Name
	problem string // the value, and what is wrong with it
}

// Error implements error.
func (e *fieldError) Error() string { return ErrConfig.Error() + ": " + e.field + ": " + e.problem }

// Unwrap makes the error an [ErrConfig].
func (e *fieldError) Unwrap() error { return ErrConfig }

// within adds the path of a part of a configuration to the fields that err names.
func within(path string, err error) error {
	return eachError(err, func(one error) error {
		if e, ok := one.(*fieldError); ok { //nolint:errorlint // an error that wraps one has the path already
			return &fieldError{path + "." + e.field, e.problem}
		}
		return fmt.Errorf("%s: %w", path, one)
	})
}

// eachError returns f of err or, if err joins several errors, f of each of them, so that every
// line of the text has what f adds.
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

// isNil reports whether an interface holds a nil pointer, map, slice, function or channel.
func isNil(x any) bool {
	v := reflect.ValueOf(x)
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
}

// nameLimits returns the rule's limits with their names and the defaults of their lockouts.
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

func checkMaxWait(d time.Duration) error {
	if d < 0 || d > MaxWindow {
		return &fieldError{"MaxWait", fmt.Sprintf("%v: must be from 0 to 366 days", d)}
	}
	if 0 < d && d < MinWindow {
		return &fieldError{"MaxWait", fmt.Sprintf("%v: must be 0, or from %v to 366 days: a number without a unit counts nanoseconds, so write 2*time.Second for 2 seconds", d, MinWindow)}
	}
	return nil
}
