package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// EventKind is the kind of an [Event].
type EventKind string

const (
	// EventDenied means that a limit or Config.OnSuspicion has denied the attempt.
	EventDenied EventKind = "denied"
	// EventFailed means that the attempt has failed: the handler rejected the
	// credentials or panicked.
	EventFailed EventKind = "failed"
	// EventSucceeded means that the attempt has succeeded: see Config.Success.
	EventSucceeded EventKind = "succeeded"
	// EventSuspected means that a stranger attempts to log in to a suspicious account:
	// see Config.SuspiciousAfter. A second event has the result of the attempt.
	EventSuspected EventKind = "suspected"
	// EventCanceled means that the client went away, or the request's context ended,
	// before the handler began a response. The attempt counts as a failure.
	EventCanceled EventKind = "canceled"
)

// Event describes an attempt for an audit log.
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
	// Account and Address are the normalised username and the key that Config.ClientIP returned if
	// Config.Identify is set. Otherwise, they are keyed hashes: the same account always has the
	// same hash. The hash's key is made of the first of Config.Secrets; without Secrets it is
	// random in each process. Both are "" if unknown.
	Account, Address string
	// Trust is why the client is trusted: "device" for a device cookie, "address" for a
	// known address, "" if the client is not trusted.
	Trust string
}

// hashKey returns the key for the hashes in events.
func hashKey(secrets [][]byte) []byte {
	if len(secrets) == 0 {
		key := make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
		return key
	}
	h := hmac.New(sha256.New, secrets[0])
	_, _ = h.Write([]byte("floodgate audit 1"))
	return h.Sum(nil)
}

func (g *Guard) hash(kind, s string) string {
	if s == "" {
		return ""
	}
	h := hmac.New(sha256.New, g.hashKey)
	_, _ = h.Write([]byte{byte(len(kind))}) // keeps the kind and its text apart
	_, _ = h.Write([]byte(kind + s))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// report reports an event to the observer and to Config.OnEvent.
func (g *Guard) report(a *attempt, kind EventKind, d core.Decision) {
	g.limiter.Report(a.Request.Context(), string(kind))
	if g.config.OnEvent == nil {
		return
	}
	e := Event{Kind: kind, Account: a.account, Address: a.address}
	if !g.config.Identify {
		e.Account, e.Address = g.hash("account", a.account), g.hash("address", a.address)
	}
	if kind == EventDenied && a.denial == nil {
		e.Rule, e.RetryAfter = d.Rule(), d.RetryAfter
	}
	switch {
	case a.device != "":
		e.Trust = "device"
	case a.known:
		e.Trust = "address"
	}
	g.config.OnEvent(e)
}

// Suspicion is the state of an account when a stranger attempts to log in to it.
type Suspicion struct {
	// Suspicious reports whether Failures has reached Config.SuspiciousAfter.
	Suspicious bool
	// Username is the normalised username of the account; "" if Suspicious is false.
	Username string
	// Failures is the number of attempts of strangers that have failed, or have not ended yet, in
	// the window of Config.AccountFailures. It does not include this attempt. While a shared store
	// does not answer, it includes the other instances' shares of the quota.
	Failures int64
	// Limit is the quota of Config.AccountFailures, or its burst. At this number of
	// failures the guard denies strangers.
	Limit int64
}

// SuspicionOf returns the state of the account when the guard allowed the request. If the client is
// trusted, Suspicious is false. Use SuspicionOf in a handler that asks for a second factor:
// DecisionFrom of the adapter returns d. It may be called concurrently.
func SuspicionOf(d core.Decision) Suspicion {
	if a, ok := d.Note().(*attempt); ok {
		return a.suspicion
	}
	return Suspicion{}
}
