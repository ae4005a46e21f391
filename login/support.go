package login

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Unblock resets the failures of an account. It resets two counters at once: the
// failures of the account, and the failures of its trusted clients together. The
// failures of an address for the account are reset when they next deny an attempt, once
// for each address. An Unblock lasts for an hour, or for the longest of
// Failures.Window, Lockout.First and Lockout.Max if that is longer: after that time it
// resets no further address. It takes effect on other instances that share the store
// within a second. Unblock does not reset the attempts of an address, as
// [Guard.UnblockAddress] does, or the failures of a device cookie.
//
// Unblock returns an error if the store fails: call it again. It also returns an error
// if the account has been unblocked 1,000 times while an Unblock lasts. It may be called
// concurrently.
func (g *Guard) Unblock(ctx context.Context, username string) error {
	account := g.config.Normalize(username)
	hits := []core.Hit{{Rule: ruleAccount, Key: account}}
	if g.config.trusts() {
		hits = append(hits, core.Hit{Rule: ruleTrusted, Key: account})
	}
	return errors.Join(
		g.limiter.Reset(ctx, hits...),
		g.memory.unblock(ctx, account),
	)
}

// UnblockAddress resets the attempts of a client's address, such as "203.0.113.9", so that it is
// allowed again whatever the username is. It does not reset the failures of an account:
// see [Guard.Unblock]. It returns an error if address is not an IP address, or if the store
// fails. It may be called concurrently.
func (g *Guard) UnblockAddress(ctx context.Context, address string) error {
	key, err := g.addressKey(ctx, "UnblockAddress", address)
	if err != nil {
		return err
	}
	return g.limiter.Reset(ctx, core.Hit{Rule: ruleAddress, Key: key})
}

// Trust counts a success that did not go through the guard, such as a sign-up, a passkey or
// a login by another service: it resets the failures of the address for the account, and
// makes the address known for the account, unless Config.ForgetAddresses is set. address is
// the client's address, such as "203.0.113.9". Behind a proxy, r.RemoteAddr is the address of
// the proxy, which would make all clients known. To set a device cookie too, call
// [Guard.DeviceCookie].
//
// Trust does not stop if ctx is canceled. It returns an error if username is empty, if
// address is not an IP address, or if the store does not answer: log the user in, the
// address is not known. It may be called concurrently.
func (g *Guard) Trust(ctx context.Context, username, address string) error {
	account := g.config.Normalize(username)
	if account == "" {
		return errors.New("login: Trust: the username must not be empty")
	}
	key, err := g.addressKey(ctx, "Trust", address)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	err = g.limiter.Reset(ctx, core.Hit{Rule: rulePair, Key: keyfuncs.JoinKeys(key, account)})
	if err != nil || g.config.ForgetAddresses {
		return err
	}
	trust := g.memory.trustIn(ctx, account)
	if trust.down {
		return fmt.Errorf("login: Trust: the shared store does not answer: the address is not known: %w", core.ErrDegraded)
	}
	return g.memory.remember(ctx, trust, key, account)
}

// addressKey returns an address as a key.
func (g *Guard) addressKey(ctx context.Context, method, address string) (string, error) {
	if _, err := netip.ParseAddr(address); err != nil {
		return "", fmt.Errorf("login: %s: the address must be an IP address, such as 203.0.113.9: %w", method, err)
	}
	key, err := g.config.ClientIP(nil, connection{ctx, net.JoinHostPort(address, "0")})
	return string(key), err
}

// Status is the state of the limits of an account and an address.
type Status struct {
	// Address is the limit on the attempts of the address: Config.Attempts.
	Address core.LimitStatus
	// AddressAccount is the limit on the failures of the address for the account:
	// Config.Failures. It does not contain failures that [Guard.Unblock] has reset, or
	// will reset when the address is next denied.
	AddressAccount core.LimitStatus
	// Account is the limit on the failures of the account: Config.AccountFailures.
	Account core.LimitStatus
	// Trusted is the limit on the failures of the account's trusted clients together:
	// Config.TrustedFailures. It is the zero value if the guard trusts no clients.
	Trusted core.LimitStatus
	// KnownAddress reports whether the address has logged in to the account within
	// Config.KnownFor and after the last Forget.
	KnownAddress bool
	// RetryAfter is the time until the guard allows an attempt of the address on the
	// account without a device cookie; 0 if it allows one now.
	RetryAfter time.Duration
}

// Status returns the state of the limits of an account and of a client's address, such
// as "203.0.113.9". It charges nothing. It returns an error if address is not an IP
// address, or if the store fails. It may be called concurrently.
func (g *Guard) Status(ctx context.Context, username, address string) (Status, error) {
	account := g.config.Normalize(username)
	key, err := g.addressKey(ctx, "Status", address)
	if err != nil {
		return Status{}, err
	}
	both := keyfuncs.JoinKeys(key, account)
	// A Peek for each hit: if a deny cache knows that one of them is denied, it does not
	// ask the store about the others of the same Peek.
	var limits []core.LimitStatus
	hits := []core.Hit{{Rule: ruleAddress, Key: key}, {Rule: rulePair, Key: both}, {Rule: ruleAccount, Key: account}}
	if g.config.trusts() {
		hits = append(hits, core.Hit{Rule: ruleTrusted, Key: account})
	}
	for _, hit := range hits {
		d, err := g.limiter.Peek(ctx, 1, hit)
		if err != nil {
			return Status{}, err
		}
		limits = slices.AppendSeq(limits, d.Limits())
	}
	pardon, err := g.memory.willPardon(ctx, key, account)
	if err != nil {
		return Status{}, err
	}
	var s Status
	if !g.config.ForgetAddresses {
		if s.KnownAddress, err = g.memory.remembers(ctx, g.memory.trustIn(ctx, account), key, account); err != nil {
			return Status{}, err
		}
	}
	for _, l := range limits {
		switch l.Rule {
		case ruleAddress:
			s.Address = l
		case rulePair:
			if pardon {
				l = core.LimitStatus{Rule: l.Rule, Limit: l.Limit, Remaining: l.Limit.Quota}
			}
			s.AddressAccount = l
		case ruleAccount:
			s.Account = l
		case ruleTrusted:
			s.Trusted = l
		}
	}
	wait := s.Account.RetryAfter
	if s.KnownAddress { // the limit with the shorter wait decides: see checkKnown
		wait = min(wait, s.Trusted.RetryAfter)
	}
	s.RetryAfter = max(s.Address.RetryAfter, s.AddressAccount.RetryAfter, wait)
	return s, nil
}

// connection is a request that has a peer's address and nothing else.
type connection struct {
	ctx  context.Context //nolint:containedctx // it is what a core.Request has
	peer string
}

func (c connection) Context() context.Context   { return c.ctx }
func (c connection) RemoteAddr() string         { return c.peer }
func (connection) Method() string               { return "POST" }
func (connection) Path() string                 { return "" }
func (connection) EscapedPath() string          { return "" }
func (connection) RawQuery() string             { return "" }
func (connection) Route() string                { return "" }
func (connection) PathValue(string) string      { return "" }
func (connection) HeaderValues(string) []string { return nil }
func (connection) Cookie(string) (string, bool) { return "", false }
func (connection) Query(string) (string, bool)  { return "", false }
func (connection) Value(any) any                { return nil }
func (connection) Body(int) ([]byte, error)     { return nil, nil }
