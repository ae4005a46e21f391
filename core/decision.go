package core

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Decision is a limiter's decision on a request. Copies are the same decision.
//
// Rule, Limit, Key, Remaining and the durations describe the deciding limit: of the limits that
// deny the request, the one with the longest wait; if none denies, the one with the smallest share
// of its quota left. They are zero if no limit applied: after [ReasonSkipped], [ReasonNoRule], or
// an error. Durations assume no further hits.
type Decision struct {
	// Allowed reports whether the request may go on.
	Allowed bool
	// Degraded reports that the store decided without the shared counters.
	Degraded bool
	// DryRun reports that only Config.DryRun kept the request from being denied.
	DryRun bool
	Reason Reason
	// Remaining is the number of hits left now, 0 or more.
	Remaining int64
	// Cost is what the request costs, in the deciding rule.
	Cost int64
	// ResetAfter is the time until the whole quota is left.
	ResetAfter time.Duration
	// MoreAfter is the time until Remaining grows, 0 if it will not.
	MoreAfter time.Duration
	// RetryAfter is the time until the deciding limit allows the same request: 0 if it does not
	// deny it, [Never] if it never will.
	RetryAfter time.Duration
	// Waited is how long the request waited: see Config.MaxWait.
	Waited time.Duration
	// Err is the error of a store, key function or hook, or why a request with a MaxWait did not
	// wait longer: context.Canceled, ErrLineFull or ErrWaitTooLong. No client sees it.
	Err error

	snap   *snapshot      // the configuration that has decided; nil: the zero Decision
	key    string         // of the deciding limit, as the store gets it: see closeKey
	at     int64          // the time of the decision on the deciding limit's key
	rule   int32          // index of the deciding limit's rule, -1 for none
	limit  uint8          // index of the deciding limit in its rule
	over   bool           // the deciding limit denies the request
	direct bool           // a call has named the hits: it is not of Check
	charge *atomic.Uint32 // see settled; nil: there is no charge
	rest   *rest          // nil for the common decision, on one limit
}

// rest holds what a decision on one plain limit does not need. Copies of a Decision share it.
type rest struct {
	items    []decided // in the order of the rules; nil: see single
	results  []Result  // of the items' limits
	quotas   []int64   // of the items' limits; nil if no item has quotas of its own
	deciding int       // index of the deciding limit in results
	note     any
	outcome  bool // Settle has something to do
	estimate bool // see Decision.SetCost
}

// decided is one item of a decision.
type decided struct {
	key  string // see Decision.key
	cost int64
	at   int64
	rule int32
}

// LimitStatus is the state of one limit for one key.
type LimitStatus struct {
	Rule  string // its name
	Limit Limit  // with the quota of the request
	Result
}

// Reason is why a request is allowed or denied.
type Reason uint8

const (
	// ReasonWithinLimits means that every limit allows the request.
	ReasonWithinLimits Reason = iota
	// ReasonOverLimit means that a limit denies the request.
	ReasonOverLimit
	// ReasonSkipped means that Hooks.ShouldLimit returned false.
	ReasonSkipped
	// ReasonNoRule means that no rule applies to the request.
	ReasonNoRule
	// ReasonBadRequest means that an error of a key function or hook wraps [ErrBadRequest]. The
	// other keys of the request were charged.
	ReasonBadRequest
	// ReasonFailed means that the store, a key function or a hook failed. See Err.
	ReasonFailed
	// ReasonCanceled means that the request's context was canceled before the decision: the client
	// left. Unless the request waited, it may have been charged.
	ReasonCanceled
)

var reasons = [...]string{"within limits", "over limit", "skipped", "no rule", "bad request", "failed", "canceled"}

// String returns the reason, such as "over limit".
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "unknown reason"
}

// Limiter returns the limiter's name.
func (d Decision) Limiter() string {
	if d.snap == nil {
		return ""
	}
	return d.snap.name
}

// Rule returns the name of the deciding limit's rule.
func (d Decision) Rule() string {
	if !d.applied() {
		return ""
	}
	return d.snap.rules[d.rule].Name
}

// Limit returns the deciding limit, with the quota of the request.
func (d Decision) Limit() Limit {
	if !d.applied() {
		return Limit{}
	}
	return *d.deciding()
}

// Key returns the key of the deciding limit, without the text of Hooks.KeyExtra. Unlike String,
// StoredKey and the logs, it may contain text of the client, such as a username.
func (d Decision) Key() string { return d.Hit().Key }

// Hit names the deciding counter, for [Limiter.Peek], [Limiter.Reset] or [Limiter.Block].
func (d Decision) Hit() Hit {
	if !d.applied() {
		return Hit{}
	}
	h := Hit{Rule: d.Rule()}
	h.Key, h.Extra = openKey(d.key)
	if d.rest != nil && d.rest.quotas != nil {
		from := d.rest.deciding - int(d.limit)
		h.Quotas = slices.Clone(d.rest.quotas[from : from+len(d.snap.rules[d.rule].Limits)])
	}
	return h
}

// StoredKey returns the name of the deciding counters in a shared store: see [StoreRule.StoredKey].
func (d Decision) StoredKey() string {
	if !d.applied() {
		return ""
	}
	return StoreRule{Name: d.Rule()}.StoredKey(d.snap.name, []byte(d.key))
}

// Limits yields the state of every limit that applied, in the order of the rules.
func (d Decision) Limits() iter.Seq[LimitStatus] {
	return func(yield func(LimitStatus) bool) {
		for i := range d.limits() {
			rule, limit := d.limitAt(i)
			r := d.resultAt(i)
			if !yield(LimitStatus{rule.Name, *limit, r}) {
				return
			}
		}
	}
}

// Note returns the value of SetNote, or nil.
func (d Decision) Note() any {
	if d.rest == nil {
		return nil
	}
	return d.rest.note
}

// SetNote attaches a value to the decision. A [Checker] that wraps a limiter, such as a login
// guard, reads it in Deny, Settle and the handler. Call SetNote before the decision is copied.
func (d *Decision) SetNote(note any) { d.more().note = note }

// NeedsOutcome reports whether an adapter must call Settle after the handler: a rule, or a
// [Checker] that has attached a note, depends on the outcome.
func (d Decision) NeedsOutcome() bool {
	return d.rest != nil && (d.rest.outcome || d.rest.note != nil)
}

// Status returns the status of the standard response: 200 if the request is allowed, 429 over a
// limit, 400 for a bad request, 503 if the limiter could not decide.
func (d Decision) Status() int {
	switch {
	case d.Allowed:
		return statusOK
	case d.Reason == ReasonBadRequest:
		return statusBadRequest
	case d.Reason == ReasonFailed || d.Reason == ReasonCanceled:
		return statusServiceUnavailable
	default:
		return statusTooManyRequests
	}
}

// String explains the decision in a sentence, without any text of the client.
func (d Decision) String() string {
	if d.snap == nil {
		return "no decision"
	}
	s := fmt.Sprintf("limiter %q ", d.snap.name)
	verdict := "denies"
	if d.DryRun {
		verdict = "would deny"
	}
	switch d.Reason {
	case ReasonSkipped:
		s += "does not limit this request"
	case ReasonNoRule:
		s += "has no rule for this request"
	case ReasonBadRequest:
		s += verdict + " a bad request"
	case ReasonFailed:
		s += verdict + ", because it could not decide"
	case ReasonCanceled:
		s += verdict + ", because the client has gone"
	case ReasonWithinLimits:
		l := d.Limit()
		s += fmt.Sprintf("allows %s: %s of %s left for rule %q, limit %q (%v), whole again in %v",
			hits(d.Cost), hitsText(d.Remaining), hitsText(l.Capacity()), d.Rule(), l.Name, l, d.ResetAfter.Round(time.Millisecond))
	case ReasonOverLimit:
		l := d.Limit()
		s += fmt.Sprintf("%s %s: rule %q, limit %q (%v) has %d left, %s",
			verdict, hits(d.Cost), d.Rule(), l.Name, l, d.Remaining, d.retry())
	}
	if d.Waited > 0 {
		s += fmt.Sprintf(", after waiting %v", d.Waited.Round(time.Microsecond))
	}
	if d.Degraded {
		s += ", decided without the shared counters"
	}
	return s
}

func (d *Decision) retry() string {
	if d.RetryAfter == Never {
		return "and waiting does not help"
	}
	return fmt.Sprintf("and will allow it in %v", d.RetryAfter)
}

// hitsText writes a quota, or what is left of it.
func hitsText(n int64) string {
	if n == Unlimited {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}

func hits(n int64) string {
	if n == 1 {
		return "1 hit"
	}
	return fmt.Sprintf("%d hits", n)
}

// applied reports whether a limit applied.
func (d *Decision) applied() bool { return d.snap != nil && d.rule >= 0 }

// more returns the rest of the decision, creating it if necessary.
func (d *Decision) more() *rest {
	if d.rest == nil {
		d.rest = new(rest)
	}
	return d.rest
}

// single reports whether the decision is on at most one limit of one key. Otherwise rest has the
// items and results.
func (d *Decision) single() bool { return d.rest == nil || d.rest.items == nil }

// items returns the number of keys that were decided on.
func (d *Decision) items() int {
	switch {
	case !d.single():
		return len(d.rest.items)
	case d.applied():
		return 1
	default:
		return 0
	}
}

func (d *Decision) item(i int) decided {
	if d.single() {
		return decided{key: d.key, cost: d.Cost, at: d.at, rule: d.rule}
	}
	return d.rest.items[i]
}

// limits returns how many limits applied.
func (d *Decision) limits() int {
	if d.single() {
		return d.items()
	}
	return len(d.rest.results)
}

// resultAt returns the result of the i-th limit that applied.
func (d *Decision) resultAt(i int) Result {
	if d.single() {
		return Result{!d.over, d.Remaining, d.ResetAfter, d.MoreAfter, d.RetryAfter}
	}
	return d.rest.results[i]
}

// limitAt returns the i-th limit that applied, with the quota of the request, and its rule.
func (d *Decision) limitAt(i int) (*compiledRule, *Limit) {
	if d.single() {
		rule := &d.snap.rules[d.rule]
		return rule, &rule.Limits[d.limit]
	}
	item, n := 0, i
	for n >= len(d.snap.rules[d.rest.items[item].rule].Limits) {
		n -= len(d.snap.rules[d.rest.items[item].rule].Limits)
		item++
	}
	rule := &d.snap.rules[d.rest.items[item].rule]
	limit := &rule.Limits[n]
	if d.rest.quotas != nil && d.rest.quotas[i] != limit.Quota {
		own := limit.with(d.rest.quotas[i])
		limit = &own
	}
	return rule, limit
}

// deciding returns the deciding limit, with the quota of the request. A limit must have applied.
func (d *Decision) deciding() *Limit {
	i := 0
	if !d.single() {
		i = d.rest.deciding
	}
	_, limit := d.limitAt(i)
	return limit
}
