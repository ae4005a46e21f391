package login

import (
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Suspicion is how an account is doing when somebody who is not known tries to
// log in to it.
type Suspicion struct {
	// Suspicious says that Failures has reached Config.SuspiciousAfter.
	Suspicious bool
	// Username is the account's, normalised.
	Username string
	// Failures is how many attempts of strangers have failed, or are not over
	// yet, in the window of Config.AccountFailures, this one not included.
	Failures int64
	// Limit is the quota of Config.AccountFailures, from which strangers are
	// refused.
	Limit int64
}

// Verdict is what OnSuspicion decides. The zero value lets the attempt go on.
type Verdict struct {
	// Delay is how long to wait before the attempt goes on. If the client hangs up
	// meanwhile, the attempt does not reach the handler, and counts as a failure.
	Delay time.Duration
	// Refuse is the response to the client in place of the handler's, such as a
	// page with a captcha; nil: the handler runs. A refused attempt counts for its
	// address only. An invalid status becomes 429. OnSuspicion finds the answer to
	// the captcha in the request.
	Refuse *core.Denial
}

// SuspicionOf returns the state of the account at the time when the guard allowed
// the request. It is the zero value if the client is trusted. A handler that asks
// for a second factor gets the decision from DecisionFrom of its adapter.
func SuspicionOf(d core.Decision) Suspicion {
	if a, ok := d.Note.(*attempt); ok {
		return a.suspicion
	}
	return Suspicion{}
}
