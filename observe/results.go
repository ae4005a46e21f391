package observe

import "iter"

// The results of a decision, as metrics and logs name them.
const (
	// Allowed, Denied and Rehearsed are the results of a limit: Rehearsed is over the
	// limit, and allowed by core.Config.Rehearsal.
	Allowed   = "allowed"
	Denied    = "denied"
	Rehearsed = "rehearsed"
	// ShadowAllowed and ShadowDenied are the results of the limits of a shadow rule, which
	// are decided on beside the others: they are not results of requests.
	ShadowAllowed = "shadow_allowed"
	ShadowDenied  = "shadow_denied"
	// Skipped, NoRule, BadRequest, Failed, Canceled and Refused are those of a limiter: see
	// [LimiterCounts].
	Skipped    = "skipped"
	NoRule     = "no_rule"
	BadRequest = "bad_request"
	Failed     = "failed"
	Canceled   = "canceled"
	Refused    = "refused"
)

// Result is how many decisions of one limit, or of a limiter, had one result.
type Result struct {
	Rule, Limit string // "" if no limit has decided
	Result      string // one of the constants
	Count       uint64
}

// Results yields all results, also those that are 0: two for each limit, or three if
// there was a rehearsal, and six of the limiter as a whole.
func (l LimiterCounts) Results() iter.Seq[Result] {
	return func(yield func(Result) bool) {
		for _, n := range l.Limits {
			yes, no := Allowed, Denied
			if n.Shadow {
				yes, no = ShadowAllowed, ShadowDenied
			}
			if !yield(Result{n.Rule, n.Limit, yes, n.Allowed}) || !yield(Result{n.Rule, n.Limit, no, n.Denied}) ||
				n.Rehearsed > 0 && !yield(Result{n.Rule, n.Limit, Rehearsed, n.Rehearsed}) {
				return
			}
		}
		for _, r := range []Result{
			{Result: Skipped, Count: l.Skipped}, {Result: NoRule, Count: l.NoRule}, {Result: BadRequest, Count: l.BadRequests},
			{Result: Failed, Count: l.Failed}, {Result: Canceled, Count: l.Canceled}, {Result: Refused, Count: l.Refused},
		} {
			if !yield(r) {
				return
			}
		}
	}
}
