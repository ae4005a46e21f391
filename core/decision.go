package core

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"
)

// Decision is a limiter's decision on a request, with all that a response header
// or an audit log needs. It is a value; its copies are the same decision.
//
// The methods Rule, Limit and Key are about the deciding limit: of the limits that
// deny the request, the one with the longest wait; if none denies it, the one with
// the smallest share of its quota remaining. Remaining, ResetAfter, MoreAfter and
// RetryAfter are its state. All of them are zero if no limit applied: the Reason is
// ReasonSkipped or ReasonNoRule, or an error came first.
type Decision struct {
	// Allowed reports whether the request may go on.
	Allowed bool
	// Degraded reports that the store answered without the shared counters.
	Degraded bool
	// DryRun reports that the request is allowed and would have been denied, but for
	// Config.DryRun.
	DryRun bool
	// Reason is why the request is allowed or denied.
	Reason Reason
	// Remaining is the number of hits left now, 0 or more.
	Remaining int64
	// Cost is the number of hits that were asked for: those of the deciding limit's
	// rule, if rules have their own Cost.
	Cost int64
	// ResetAfter is how long it takes, without further hits, until the whole quota is
	// available at once.
	ResetAfter time.Duration
	// MoreAfter is how long it takes, without further hits, until Remaining grows. 0 if
	// the whole quota is available, or the quota is 0.
	MoreAfter time.Duration
	// RetryAfter is how long to wait until the deciding limit allows the same request:
	// 0 if it does not deny the request, Never if it never will allow it.
	RetryAfter time.Duration
	// Err is what went wrong, nil if nothing did: the error of a store, key function or
	// hook. It is for logs and never sent to the client.
	Err error

	snap  *snapshot    // the configuration that has decided; nil: the zero Decision
	key   string       // of the deciding limit, as the store gets it: see closeKey
	at    int64        // the time of the decision on the deciding limit's key
	rule  int32        // index of the deciding limit's rule, -1 for none
	limit uint8        // index of the deciding limit in its rule
	over  bool         // the deciding limit denies the request
	hits  bool         // it is a decision of Take or Wait, not of Check
	ended *atomic.Bool // the charge has been adjusted or given back; nil: there is none
	rest  *rest        // nil for the common decision, on one limit
}

// rest is what a decision on one plain limit does not need. The copies of a Decision share it.
type rest struct {
	items    []decided // in the order of the rules; nil: one item with one limit, which the Decision has
	results  []Result  // of the items' limits; nil if items is
	quotas   []int64   // as results; nil if no item has quotas of its own
	deciding int       // index of the deciding limit in results
	waited   time.Duration
	note     any
	outcome  bool                   // Settle has something to do
	estimate bool                   // see Decision.SetCost
	settled  atomic.Bool            // by Settle
	fates    atomic.Pointer[[]fate] // what Settle has done with the items; nil: it has kept all
	said     atomic.Int64           // what SetCost has said, plus 1; 0: nothing

	lease    uint64      // of the items whose rules have a limit of Leases; 0: none
	released atomic.Bool // the leases have ended
	held     atomic.Bool // Settle leaves them alone: see Hold
	since    time.Time   // when the leases began, if an observer wants to know how long they last
}

// decided is one item of a decision.
type decided struct {
	key  string // see Decision.key
	cost int64
	at   int64
	rule int32
}

// LimitStatus is the state of one limit for one key. Its fields mean what those of
// [Decision] mean.
type LimitStatus struct {
	// Rule is the name of the rule that the limit belongs to.
	Rule string
	// Limit is the limit, its Name filled in, with the quota of the request.
	Limit      Limit
	Remaining  int64
	ResetAfter time.Duration
	MoreAfter  time.Duration
	RetryAfter time.Duration
	// Denied reports whether this limit denies the request.
	Denied bool
}

// Reason is why a request is allowed or denied.
type Reason uint8

const (
	// ReasonWithinLimits means that every limit allows the request; it has been charged.
	ReasonWithinLimits Reason = iota
	// ReasonOverLimit means that at least one limit denies the request; nothing was charged.
	ReasonOverLimit
	// ReasonSkipped means that Hooks.ShouldLimit returned false.
	ReasonSkipped
	// ReasonNoRule means that no rule applies to the request.
	ReasonNoRule
	// ReasonBadRequest means that a key function or hook found the request at fault.
	ReasonBadRequest
	// ReasonFailed means that the store, a key function or a hook failed: see Err.
	ReasonFailed
	// ReasonCanceled means that the request's context was canceled before the store, a key
	// function or a hook had answered: the client has gone. The request is denied. What the
	// store was asked to charge may be charged.
	ReasonCanceled
)

var reasons = [...]string{"within limits", "over limit", "skipped", "no rule", "bad request", "failed", "canceled"}

// String returns the reason as a word or two.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "unknown reason"
}

// Limiter returns the limiter's name, "" for the zero Decision.
func (d Decision) Limiter() string {
	if d.snap == nil {
		return ""
	}
	return d.snap.name
}

// Rule returns the name of the deciding limit's rule, "" if no limit applied.
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

// Key returns the key of the deciding limit, as the rule's key function made it or a
// [Hit] brought it, without what Hooks.KeyExtra added. It is "" if no rule applied.
// It may hold what a client sent, such as a username: String, StoredKey and the logs
// of this package never show it.
func (d Decision) Key() string { return d.Hit().Key }

// Hit returns the counter that the decision names: the deciding limit's rule, its
// key, what Hooks.KeyExtra added, and the quotas of the decision, if they are not the
// limits' own. With it an operator can look at that counter or forget it, by
// [Limiter.Peek], [Limiter.Reset] or [Limiter.Block]. It is the zero value if no rule
// applied. As Key, it may hold what a client sent.
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

// StoredKey returns the name under which a shared store keeps the counters of the
// deciding rule for this key: see [StoreRule.StoredKey]. It is "" if no rule applied.
func (d Decision) StoredKey() string {
	if !d.applied() {
		return ""
	}
	return StoreRule{Name: d.Rule()}.StoredKey(d.snap.name, []byte(d.key))
}

// StoredKey returns the name under which a store outside the process keeps the
// counters of a key of the rule, for a limiter of this name. Of the rule, only its
// Name counts. The name is "fg1", the names of the limiter and the rule, and 128 bits
// of the key's SHA-256 as base64url (RFC 4648, section 5), with ":" between them. Two
// keys, rules or limiters have the same name only if the hashes collide. A name does
// not show what a client sent. It has at most 156 of the characters 0-9 A-Z a-z : _ . -
// Names change only with a major version.
//
// key is as in [Item]: the Key of a [Hit] followed by a zero byte.
func (r StoreRule) StoredKey(limiter string, key []byte) string {
	sum := sha256.Sum256(key)
	buf := make([]byte, 0, 160)
	buf = append(buf, "fg1:"...)
	buf = append(buf, limiter...)
	buf = append(buf, ':')
	buf = append(buf, r.Name...)
	buf = append(buf, ':')
	return string(base64.RawURLEncoding.AppendEncode(buf, sum[:16]))
}

// Limits yields the state of every limit that applied, in the order of the rules and
// their limits.
func (d Decision) Limits() iter.Seq[LimitStatus] {
	return func(yield func(LimitStatus) bool) {
		for i := range d.limits() {
			rule, limit := d.limitAt(i)
			r := d.resultAt(i)
			s := LimitStatus{rule.Name, *limit, r.Remaining, r.ResetAfter, r.MoreAfter, r.RetryAfter, !r.Allowed}
			if !yield(s) {
				return
			}
		}
	}
}

// Waited returns how long the request has waited for its turn: see Config.MaxWait and
// [Limiter.Wait]. 0 if it was allowed or denied at once.
func (d Decision) Waited() time.Duration {
	if d.rest == nil {
		return 0
	}
	return d.rest.waited
}

// Note returns what a [Checker] around a limiter has left with SetNote, nil if nothing.
func (d Decision) Note() any {
	if d.rest == nil {
		return nil
	}
	return d.rest.note
}

// SetNote leaves a value for a [Checker] around a limiter, such as a login guard, which
// finds it again in Deny, in Settle and in the handler. A limiter leaves none. SetNote must
// be called before the decision is copied.
func (d *Decision) SetNote(note any) { d.more().note = note }

// NeedsOutcome reports whether a rule depends on the outcome of the request, or the request
// has leases. If so, an adapter calls Settle once the handler has returned.
func (d Decision) NeedsOutcome() bool {
	return d.rest != nil && (d.rest.outcome || d.rest.lease != 0)
}

// Status returns the status of the standard response to the decision: 200 if it is
// allowed, 429 over a limit, 400 for a bad request, 503 if the limiter could not decide.
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

// String explains the decision in one sentence, without any text that came from the
// client.
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
		s += fmt.Sprintf("allows %s: %d of %d left for rule %q, limit %q (%v), %s",
			hits(d.Cost), d.Remaining, l.Capacity(), d.Rule(), l.Name, l, d.whole(l))
	case ReasonOverLimit:
		l := d.Limit()
		s += fmt.Sprintf("%s %s: rule %q, limit %q (%v) has %d left, %s",
			verdict, hits(d.Cost), d.Rule(), l.Name, l, d.Remaining, d.retry())
	}
	if waited := d.Waited(); waited > 0 {
		s += fmt.Sprintf(", after waiting %v", waited.Round(time.Microsecond))
	}
	if d.Degraded {
		s += ", decided without the shared counters"
	}
	return s
}

func (d *Decision) whole(l Limit) string {
	if l.Algorithm == Leases {
		return "whole again when all requests end"
	}
	return "whole again in " + d.ResetAfter.Round(time.Millisecond).String()
}

func (d *Decision) retry() string {
	if d.RetryAfter == Never {
		return "and waiting does not help"
	}
	return fmt.Sprintf("and will allow it in %v", d.RetryAfter)
}

func hits(n int64) string {
	if n == 1 {
		return "1 hit"
	}
	return fmt.Sprintf("%d hits", n)
}

// applied reports whether a limit applied.
func (d *Decision) applied() bool { return d.snap != nil && d.rule >= 0 }

// more returns the rest of the decision, which it makes if there is none yet.
func (d *Decision) more() *rest {
	if d.rest == nil {
		d.rest = new(rest)
	}
	return d.rest
}

// items returns the number of items that were decided on.
func (d *Decision) items() int {
	switch {
	case d.rest != nil && d.rest.items != nil:
		return len(d.rest.items)
	case d.applied():
		return 1
	default:
		return 0
	}
}

func (d *Decision) item(i int) decided {
	if d.rest != nil && d.rest.items != nil {
		return d.rest.items[i]
	}
	return decided{key: d.key, cost: d.Cost, at: d.at, rule: d.rule}
}

// limits returns how many limits applied.
func (d *Decision) limits() int {
	switch {
	case d.rest != nil && d.rest.results != nil:
		return len(d.rest.results)
	case d.applied():
		return 1
	default:
		return 0
	}
}

// limitAt returns the i-th limit that applied, with the quota of the request, and its rule.
func (d *Decision) limitAt(i int) (*compiledRule, *Limit) {
	if d.rest == nil || d.rest.items == nil {
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

// resultAt returns the result of the i-th limit that applied.
func (d *Decision) resultAt(i int) Result {
	if d.rest != nil && d.rest.results != nil {
		return d.rest.results[i]
	}
	return Result{!d.over, d.Remaining, d.ResetAfter, d.MoreAfter, d.RetryAfter}
}

// deciding returns the deciding limit, with the quota of the request. A limit must have applied.
func (d *Decision) deciding() *Limit {
	if d.rest == nil || d.rest.items == nil {
		return &d.snap.rules[d.rule].Limits[d.limit]
	}
	_, limit := d.limitAt(d.rest.deciding)
	return limit
}
