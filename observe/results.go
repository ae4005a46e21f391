package observe

import "iter"

// The results of a decision, as metrics and logs name them.
const (
	// Allowed, Denied and DryRun are the results of a limit. A request with the result DryRun is
	// over the limit, and core.Config.DryRun has allowed it. A limiter has Denied too.
	Allowed = "allowed"
	Denied  = "denied"
	DryRun  = "dry_run"
	// Skipped, NoRule, BadRequest, Failed and Canceled are those of a limiter: see [LimiterCounts].
	Skipped    = "skipped"
	NoRule     = "no_rule"
	BadRequest = "bad_request"
	Failed     = "failed"
	Canceled   = "canceled"
)

// Result is how many decisions of one limit, or of a limiter, had one result.
type Result struct {
	Rule, Limit string // "" if no limit has decided
	Result      string // one of the constants
	Count       uint64
}

// Results yields all results, also those that are 0: two for each limit, or three if there was a
// dry run, and six of the limiter as a whole.
func (l LimiterCounts) Results() iter.Seq[Result] {
	return func(yield func(Result) bool) {
		for _, n := range l.Limits {
			if !yield(Result{n.Rule, n.Limit, Allowed, n.Allowed}) || !yield(Result{n.Rule, n.Limit, Denied, n.Denied}) ||
				n.DryRun > 0 && !yield(Result{n.Rule, n.Limit, DryRun, n.DryRun}) {
				return
			}
		}
		for _, r := range []Result{
			{Result: Skipped, Count: l.Skipped}, {Result: NoRule, Count: l.NoRule}, {Result: BadRequest, Count: l.BadRequests},
			{Result: Failed, Count: l.Failed}, {Result: Canceled, Count: l.Canceled}, {Result: Denied, Count: l.Denied},
		} {
			if !yield(r) {
				return
			}
		}
	}
}
