package login

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/httprequest"
)

// Unblock resets the failures of an account: those of the account, of its trusted clients together,
// and of all addresses for the account, on every instance that shares the store. It does not reset
// the attempts of an address, as [Guard.UnblockAddress] does, or the failures of a device cookie.
// The store remembers an Unblock for a year, or for 28 days if it keeps nothing for longer. When it
// forgets it, the failures of each address for the account are reset once more.
//
// Unblock does not stop if ctx is canceled. It returns an error if the store fails: call it
// again. It also returns an error if the account was unblocked some 2,000 times within that
// time. It may be called concurrently.
func (g *Guard) Unblock(ctx context.Context, username string) error {
	account := g.config.Normalize(username)
	err := g.limiter.Reset(context.WithoutCancel(ctx), core.Hit{Rule: ruleAccount, Key: account}, core.Hit{Rule: ruleTrusted, Key: account})
	if changed := g.memory.change(ctx, ruleUnblocked, account); changed != nil {
		err = errors.Join(err, fmt.Errorf("login: Unblock: %w", changed))
	}
	return err
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

// addressKey returns an address as a key.
func (g *Guard) addressKey(ctx context.Context, method, address string) (string, error) {
	if _, err := netip.ParseAddr(address); err != nil {
		return "", fmt.Errorf("login: %s: the address must be an IP address, such as 203.0.113.9: %w", method, err)
	}
	r := (&http.Request{RemoteAddr: net.JoinHostPort(address, "0")}).WithContext(ctx)
	key, err := g.config.ClientIP(nil, httprequest.Request{HTTP: r})
	return string(key), err
}

// Status is the state of the limits of an account and an address.
type Status struct {
	// Address is the limit on the attempts of the address: Config.Attempts.
	Address core.LimitStatus
	// AddressAccount is the limit on the failures of the address for the account: Config.Failures.
	AddressAccount core.LimitStatus
	// Account is the limit on the failures of the account: Config.AccountFailures.
	Account core.LimitStatus
	// Trusted is the limit on the failures of the account's trusted clients together:
	// Config.TrustedFailures.
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
	t, err := g.memory.read(ctx, key, account)
	if err != nil {
		return Status{}, err
	}
	s := Status{KnownAddress: t.known}
	limits := []struct {
		of *core.LimitStatus
		core.Hit
	}{
		{&s.Address, core.Hit{Rule: ruleAddress, Key: key}},
		{&s.AddressAccount, core.Hit{Rule: rulePair, Key: pairKey(t, key, account)}},
		{&s.Account, core.Hit{Rule: ruleAccount, Key: account}},
		{&s.Trusted, core.Hit{Rule: ruleTrusted, Key: account}},
	}
	// A Peek for each limit: if a deny cache knows that one of them denies, it does not ask
	// the store about the others of the same Peek.
	for _, limit := range limits {
		d, err := g.limiter.Peek(ctx, 1, limit.Hit)
		if err != nil {
			return Status{}, err
		}
		for l := range d.Limits() {
			*limit.of = l
		}
	}
	wait := s.Account.RetryAfter
	if s.KnownAddress { // until it is trusted again, or strangers are allowed
		wait = min(wait, s.Trusted.RetryAfter)
	}
	s.RetryAfter = max(s.Address.RetryAfter, s.AddressAccount.RetryAfter, wait)
	return s, nil
}
