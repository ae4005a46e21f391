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
	// Delay is how long to wait before it goes on; it ends early where the
	// client hangs up.
	Delay time.Duration
	// Refuse, where it is not nil, is what the client gets in place of the
	// handler's answer, such as a page with a captcha; the attempt counts for
	// its address alone. A status that is none becomes 429. OnSuspicion finds
	// the captcha's answer in the request.
	Refuse *core.Denial
}

// SuspicionOf returns how things stood with the account when the guard let a
// request through; the zero value where it counts by a device cookie or known
// address. A handler that asks for a second factor gets the decision by its
// adapter's DecisionFrom.
func SuspicionOf(d core.Decision) Suspicion {
	if a, ok := d.Note.(*attempt); ok {
		return a.suspicion
	}
	return Suspicion{}
}
