package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// EventKind is what has become of an attempt.
type EventKind uint8

const (
	// Refused means that a limit has refused it.
	Refused EventKind = iota
	// Failed means that the handler has.
	Failed
	// Succeeded means that it has logged in.
	Succeeded
	// Suspected means that its account is suspicious: see Config.OnSuspicion.
	// What becomes of the attempt is another event.
	Suspected
	// Canceled means that the client went away before it was answered. The
	// attempt counts as a failure.
	Canceled
)

// String returns "refused", "failed", "succeeded", "suspected" or "canceled".
func (k EventKind) String() string {
	switch k {
	case Refused:
		return "refused"
	case Failed:
		return "failed"
	case Succeeded:
		return "succeeded"
	case Suspected:
		return "suspected"
	case Canceled:
		return "canceled"
	}
	return "unknown"
}

// Event is what an audit log wants to know of an attempt. Only the fields
// Username and ClientIP have anything in them that a client has written, and
// only with Config.Identify.
type Event struct {
	Kind EventKind
	// Rule is the rule whose limit denied the attempt, for Refused: "address",
	// "address-account", "account", "device" or "trusted". It is "" if
	// Config.OnSuspicion refused it.
	Rule string
	// RetryAfter is how long that limit denies it.
	RetryAfter time.Duration
	// Account and Address tell the same account or address from others: keyed
	// hashes, with the first of Config.Secrets, or for as long as the process
	// lives where there is none. "" where not known.
	Account, Address string
	// Trust says why the client is no stranger: "device", "address", or "".
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
	if kind == Refused && a.refusal == nil {
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
