package core

import "time"

// Decision is what a limiter said of a request, with all that a response
// header or an audit log needs. It is a value: it stays as it is.
type Decision struct {
	// Allowed says that the request may go on.
	Allowed bool
	// Reason says why the decision is what it is.
	Reason Reason
	// Degraded says that the store answered without the shared counters.
	Degraded bool
	// Rehearsal says that the request is allowed and would have been denied, but
	// for Config.Rehearsal or Rule.Shadow.
	Rehearsal bool
	// Limiter is the limiter's name.
	Limiter string
	// LimitStatus is that of the deciding limit: of those that refuse, the one
	// with the longest wait; where none refuses, the one with the smallest
	// share of its quota remaining. It is the zero value where no limit
	// applied (Reason is Skipped or NoRule, or an error came first).
	LimitStatus
	// Cost is the number of hits that were asked for: those of the deciding
	// limit's rule, if rules have their own Cost.
	Cost int64
	// Err is what went wrong, nil if nothing did: the error of a store, key
	// function or hook. It is for logs and never sent to the client.
	Err error
	// Note is whatever a [Checker] around a limiter, such as a login guard,
	// wants to find again in Deny, in Settle and in the handler. A limiter
	// leaves it nil.
	Note any

	detail detail
}

// LimitStatus is how things stand with one limit for one key.
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
	// RetryAfter is how long to wait before the same request can pass: 0 where
	// this limit does not refuse it, Never where no waiting will help.
	RetryAfter time.Duration
	// Exceeded says that this limit refuses the request.
	Exceeded bool
}

// Reason says why a decision is what it is.
type Reason uint8

const (
	// WithinLimits means that every limit admits the request; it has been charged.
	WithinLimits Reason = iota
	// OverLimit means that at least one limit refuses the request; nothing was charged.
	OverLimit
	// Skipped means that Hooks.ShouldLimit said that the request is not limited.
	Skipped
	// NoRule means that no rule applies to the request.
	NoRule
	// BadRequest means that a key function or hook found the request at fault.
	BadRequest
	// Failed means that the store, a key function or a hook failed, and Err tells how.
	Failed
)

// String returns the reason as a word or two.
func (r Reason) String() string {
	switch r {
	case WithinLimits:
		return "within limits"
	case OverLimit:
		return "over limit"
	case Skipped:
		return "skipped"
	case NoRule:
		return "no rule"
	case BadRequest:
		return "bad request"
	case Failed:
		return "failed"
	}
	return "unknown reason"
}
