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
)

// Unblock forgets the failures of an account: those of the account itself and
// those of its trusted clients together at once, and those of an address for the
// account once, when the address is next denied because of them in the following
// hour (or for as long as Failures and its Lockout count, if that is longer).
// Other instances that share the store notice within a second. Unblock does not
// unblock the addresses themselves. An error means that the store could not be told.
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

// Status is how things stand with an account and an address.
type Status struct {
	// Address is the limit on the attempts of the address.
	Address core.LimitStatus
	// AddressAccount is the limit on its failures for the account. Failures that
	// Unblock has forgotten, or will when the address is next denied, are not in it.
	AddressAccount core.LimitStatus
	// Account is the limit on the account's failures.
	Account core.LimitStatus
	// Trusted is the limit on the failures of the account's trusted clients
	// together; the zero value if the guard trusts none.
	Trusted core.LimitStatus
	// KnownAddress is true if the address has logged in to the account lately: see
	// Config.KnownFor.
	KnownAddress bool
	// RetryAfter is the time until an attempt of this address on this account is
	// allowed, without a device cookie; 0 if it is allowed now.
	RetryAfter time.Duration
}

// Status returns the limits of an account and of a client's address, such as
// "203.0.113.9", and changes nothing. A text that is no address is an error.
func (g *Guard) Status(ctx context.Context, username, address string) (Status, error) {
	if _, err := netip.ParseAddr(address); err != nil {
		return Status{}, fmt.Errorf("login: the address of Status: %w", err)
	}
	account := g.config.Normalize(username)
	key, err := g.config.ClientIP(nil, connection{ctx, net.JoinHostPort(address, "0")})
	if err != nil {
		return Status{}, err
	}
	both := pair(string(key), account)
	// One by one: together, a key that is known to be denied may keep the store
	// from being asked about the others.
	var limits []core.LimitStatus
	hits := []core.Hit{{Rule: ruleAddress, Key: string(key)}, {Rule: rulePair, Key: both}, {Rule: ruleAccount, Key: account}}
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
	pardon, err := g.memory.willPardon(ctx, string(key), account)
	if err != nil {
		return Status{}, err
	}
	var s Status
	if !g.config.ForgetAddresses {
		if s.KnownAddress, err = g.memory.remembers(ctx, g.memory.trustIn(ctx, account), string(key), account); err != nil {
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
	if s.KnownAddress { // either of the two limits admits it
		wait = min(wait, s.Trusted.RetryAfter)
	}
	s.RetryAfter = max(s.Address.RetryAfter, s.AddressAccount.RetryAfter, wait)
	return s, nil
}

// connection is a request of which nothing is known but the peer's address.
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
func (connection) HeaderValues(string) []string { return nil }
func (connection) Cookie(string) (string, bool) { return "", false }
func (connection) Query(string) (string, bool)  { return "", false }
func (connection) Value(any) any                { return nil }
func (connection) Body(int) ([]byte, error)     { return nil, nil }
