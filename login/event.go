package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// EventKind is what happened to an attempt: EventRefused, EventFailed,
// EventSucceeded, EventSuspected or EventCanceled.
type EventKind uint8

const (
	// EventRefused means that a limit or Config.OnSuspicion has denied the attempt.
	EventRefused EventKind = iota
	// EventFailed means that the handler has rejected the attempt's credentials.
	EventFailed
	// EventSucceeded means that the client has logged in.
	EventSucceeded
	// EventSuspected means that the account is suspicious: see Config.OnSuspicion.
	// The result of the attempt is another event.
	EventSuspected
	// EventCanceled means that the client went away before it was answered. The
	// attempt counts as a failure.
	EventCanceled
)

// String returns "refused", "failed", "succeeded", "suspected" or "canceled".
func (k EventKind) String() string {
	switch k {
	case EventRefused:
		return "refused"
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

// Event describes an attempt for an audit log. Only Username and ClientIP have
// text that a client has written, and only with Config.Identify.
type Event struct {
	Kind EventKind
	// Rule is the rule whose limit denied the attempt, for EventRefused: "address",
	// "address-account", "account", "device" or "trusted". It is "" if
	// Config.OnSuspicion denied the attempt.
	Rule string
	// RetryAfter is the time after which Rule would allow the attempt.
	RetryAfter time.Duration
	// Account and Address are keyed hashes: equal for the same account or address.
	// The key is the first of Config.Secrets; without Secrets, it is a random key
	// that another process does not have. They are "" if not known.
	Account, Address string
	// Trust is the reason why the client is trusted: "device", "address", or "" if
	// it is not.
	Trust string
	// Username and ClientIP are "" without Config.Identify.
	Username, ClientIP string
}

// hasher makes keyed hashes.
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
	_, _ = m.Write([]byte(pair(kind, s)))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

func (g *Guard) tell(a *attempt, kind EventKind, d core.Decision) {
	if g.config.OnEvent == nil {
		return
	}
	e := Event{Kind: kind, Account: g.hasher.sum("account", a.account), Address: g.hasher.sum("address", a.address)}
	if kind == EventRefused && a.refusal == nil {
		e.Rule, e.RetryAfter = d.Rule, d.RetryAfter
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
