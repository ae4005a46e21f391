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
	switch k {
	case EventDenied:
		return "denied"
	case EventFailed:
		return "failed"
	case EventSucceeded:
		return "succeeded"
	case EventSuspected:
		return "suspected"
	case EventCanceled:
		return "canceled"
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
	case a.byDevice():
		e.Trust = "device"
	case a.known:
		e.Trust = "address"
	}
	if g.config.Identify {
		e.Username, e.ClientIP = a.account, a.address
	}
	g.config.OnEvent(e)
}
