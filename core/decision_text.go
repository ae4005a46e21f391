package core

import (
	"fmt"
	"time"
)

// String explains the decision in one sentence, without any text that came
// from the client.
func (d Decision) String() string {
	if d.detail.snap == nil {
		return "no decision"
	}
	s := fmt.Sprintf("limiter %q ", d.Limiter)
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
		s += fmt.Sprintf("allows %s: %d of %d left for rule %q, limit %q (%v), whole again %s",
			hits(d.Cost), d.Remaining, d.Limit.Capacity(), d.Rule, d.Limit.Name, d.Limit, d.whole())
	case ReasonOverLimit:
		s += fmt.Sprintf("%s %s: rule %q, limit %q (%v) has %d left, %s",
			verdict, hits(d.Cost), d.Rule, d.Limit.Name, d.Limit, d.Remaining, d.retry())
	}
	if d.Waited > 0 {
		s += fmt.Sprintf(", after waiting %v", d.Waited.Round(time.Microsecond))
	}
	if d.Degraded {
		s += ", decided without the shared counters"
	}
	return s
}

func (d *Decision) whole() string {
	if d.Limit.Algorithm == Leases {
		return "when all requests end"
	}
	return "in " + d.ResetAfter.Round(time.Millisecond).String()
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
