package login

import (
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Suspicion is the state of an account when a stranger attempts to log in to it.
type Suspicion struct {
	// Suspicious reports whether Failures has reached Config.SuspiciousAfter.
	Suspicious bool
	// Username is the normalised username of the account; "" if Suspicious is false.
	Username string
	// Failures is the number of attempts of strangers that have failed, or have not
	// ended yet, in the window of Config.AccountFailures. It does not include this
	// attempt. While a shared store does not answer, the parts of the quota that other
	// instances may use count as failures.
	Failures int64
	// Limit is the quota of Config.AccountFailures. At this number of failures the
	// guard denies strangers.
	Limit int64
}

// Verdict is the decision of Config.OnSuspicion. With the zero value, the attempt
// reaches the handler at once.
type Verdict struct {
	// Delay is how long the guard waits before the attempt reaches the handler; 0 or
	// less means no wait. If the client goes away during the wait, the attempt does not
	// reach the handler and counts as a failure.
	Delay time.Duration
	// Deny is a response that the guard sends after the Delay in place of the
	// handler's, such as a page with a captcha; nil: the handler runs. A denied attempt
	// is charged to its address only. A status below 200 or above 599 becomes 429. The
	// next request has the answer to the captcha: OnSuspicion must check it.
	Deny *core.Denial
}

// SuspicionOf returns the state of the account when the guard allowed the request. If
// the client is trusted, Suspicious is false. Use SuspicionOf in a handler that asks
// for a second factor: DecisionFrom of the adapter returns d. It may be called
// concurrently.
func SuspicionOf(d core.Decision) Suspicion {
	if a, ok := d.Note().(*attempt); ok {
		return a.suspicion
	}
	return Suspicion{}
}
