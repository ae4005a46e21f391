package core

import "time"

// Decision is a limiter's decision on a request, with all that a response header
// or an audit log needs. It is a value, and does not change.
type Decision struct {
	// Allowed reports whether the request may go on.
	Allowed bool
	// Reason is why the request is allowed or denied.
	Reason Reason
	// Degraded reports that the store answered without the shared counters.
	Degraded bool
	// DryRun reports that the request is allowed and would have been denied, but
	// for Config.DryRun.
	DryRun bool

	marks marks

	// Limiter is the limiter's name.
	Limiter string
	// LimitStatus is that of the deciding limit: of the limits that deny the
	// request, the one with the longest wait; if none denies it, the one with the
	// smallest share of its quota remaining. It is the zero value if no limit
	// applied: Reason is ReasonSkipped or ReasonNoRule, or an error came first.
	LimitStatus
	// Cost is the number of hits that were asked for: those of the deciding
	// limit's rule, if rules have their own Cost.
	Cost int64
	// Waited is how long the request has waited for its turn: see Config.MaxWait and
	// [Limiter.Wait]. 0 if it was allowed or denied at once.
	Waited time.Duration
	// Err is what went wrong, nil if nothing did: the error of a store, key
	// function or hook. It is for logs and never sent to the client.
	Err error
	// Note is for a [Checker] around a limiter, such as a login guard: a value that
	// it finds again in Deny, in Settle and in the handler. A limiter
	// leaves it nil.
	Note any

	outcomes

	detail detail
}

// LimitStatus is the state of one limit for one key.
type LimitStatus struct {
	// Rule is the name of the rule that the limit belongs to.
	Rule string
	// Limit is the limit, its Name filled in.
	Limit Limit
	// Remaining is the number of hits left now, 0 or more.
	Remaining int64
	// ResetAfter is how long it takes, without further hits, until the whole
	// quota is available at once.
	ResetAfter time.Duration
	// MoreAfter is how long it takes, without further hits, until Remaining
	// grows. 0 if the whole quota is available, or the quota is 0.
	MoreAfter time.Duration
	// RetryAfter is how long to wait until this limit allows the same request: 0
	// if it does not deny the request, Never if it never will allow it.
	RetryAfter time.Duration
	// Exceeded reports whether this limit denies the request.
	Exceeded bool
}

// Reason is why a request is allowed or denied.
type Reason uint8

const (
	// ReasonWithinLimits means that every limit admits the request; it has been charged.
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

// String returns the reason as a word or two.
func (r Reason) String() string {
	switch r {
	case ReasonWithinLimits:
		return "within limits"
	case ReasonOverLimit:
		return "over limit"
	case ReasonSkipped:
		return "skipped"
	case ReasonNoRule:
		return "no rule"
	case ReasonBadRequest:
		return "bad request"
	case ReasonFailed:
		return "failed"
	case ReasonCanceled:
		return "canceled"
	}
	return "unknown reason"
}
