package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// EventKind is the kind of an [Event]: EventDenied, EventFailed, EventSucceeded,
// EventSuspected or EventCanceled.
type EventKind uint8

const (
	// EventDenied means that a limit or Config.OnSuspicion has denied the attempt.
	EventDenied EventKind = iota
	// EventFailed means that the attempt has failed: the handler rejected the
	// credentials or panicked.
	EventFailed
	// EventSucceeded means that the attempt has succeeded: see Config.Success.
	EventSucceeded
	// EventSuspected means that a stranger attempts to log in to a suspicious account:
	// see Config.SuspiciousAfter. A second event has the result of the attempt.
	EventSuspected
	// EventCanceled means that the client went away, or the request's context ended,
	// before the handler began a response. The attempt counts as a failure.
	EventCanceled
)

// String returns "denied", "failed", "succeeded", "suspected" or "canceled".
func (k EventKind) String() string {
	names := []string{EventDenied: "denied", EventFailed: "failed", EventSucceeded: "succeeded", EventSuspected: "suspected", EventCanceled: "canceled"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Event describes an attempt for an audit log. Only Username and ClientIP contain
// text that a client has written, and only if Config.Identify is set.
type Event struct {
	// Kind is what happened.
	Kind EventKind
	// Rule is the rule whose limit denied the attempt, for EventDenied: "address",
	// "address-account", "account", "device" or "trusted". It is "" if
	// Config.OnSuspicion denied the attempt.
	Rule string
	// RetryAfter is the time until Rule would allow the attempt, for EventDenied.
	// It is 0 if Config.OnSuspicion denied the attempt.
	RetryAfter time.Duration
	// Account and Address are keyed hashes of the normalised username and of the
	// address: the same account always has the same hash. The key is made of the first
	// of Config.Secrets; without Secrets it is random and differs between processes. A
	// hash is "" if the account or the address is not known.
	Account, Address string
	// Trust is why the client is trusted: "device" for a device cookie, "address" for a
	// known address, "" if the client is not trusted.
	Trust string
	// Username is the normalised username. ClientIP is the key that Config.ClientIP
	// returned. Both are "" unless Config.Identify is set.
	Username, ClientIP string
}

// hasher makes keyed hashes. It may be used concurrently.
type hasher struct{ key []byte }

func newHasher(secrets [][]byte) hasher {
	key := make([]byte, sha256.Size)
	if len(secrets) > 0 {
		h := hmac.New(sha256.New, secrets[0])
		_, _ = h.Write([]byte("floodgate audit 1"))
		return hasher{h.Sum(nil)}
	}
	_, _ = rand.Read(key) // never fails
	return hasher{key}
}

func (h hasher) sum(kind, s string) string {
	if s == "" {
		return ""
	}
	m := hmac.New(sha256.New, h.key)
	_, _ = m.Write([]byte{byte(len(kind))}) // keeps the kind and its text apart
	_, _ = m.Write([]byte(kind + s))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

func (g *Guard) tell(a *attempt, kind EventKind, d core.Decision) {
	g.limiter.Report(a.Request.Context(), kind.String())
	if g.config.OnEvent == nil {
		return
	}
	e := Event{Kind: kind, Account: g.hasher.sum("account", a.account), Address: g.hasher.sum("address", a.address)}
	if kind == EventDenied && a.denial == nil {
		e.Rule, e.RetryAfter = d.Rule(), d.RetryAfter
	}
	switch {
	case a.device != "":
		e.Trust = "device"
	case a.known:
		e.Trust = "address"
	}
	if g.config.Identify {
		e.Username, e.ClientIP = a.account, a.address
	}
	g.config.OnEvent(e)
}

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
