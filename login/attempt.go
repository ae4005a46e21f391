package login

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/internal/requestlog"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// attempt is a request that the guard checks, with the account, the address and the trust that the
// guard has found for it. The limiter's key functions get it from Request.Value.
type attempt struct {
	core.Request
	guard *Guard

	address string // the client's address as a key
	account string // the normalised username; "" until find has found it
	basic   bool   // only BasicUser has found the username
	inBasic bool   // BasicUser has found a username since the last source was called

	slot   core.Decision // of Basic authentication: see newSlots
	trust  trust         // before the handler runs
	device string        // the nonce of a valid device cookie
	known  bool          // the address has logged in to the account within KnownFor

	settled   atomic.Bool
	denial    *core.Denial // of OnSuspicion
	suspicion Suspicion
}

type attemptKey struct{}

// Value implements core.Request.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Request.Value(key)
}

// errOthers wraps core.SkipRule, so that the log does not say that a rule limits nobody.
var errOthers = fmt.Errorf("the rule is for other attempts: %w", core.SkipRule)

// findAddress sets the client's address, as a key. Attempts for which Config.ClientIP returns
// core.SkipRule share the address "": without a rule, they would not be limited.
func (a *attempt) findAddress(r core.Request) error {
	if a.address != "" {
		return nil
	}
	key, err := a.guard.config.ClientIP(nil, r)
	switch {
	case err == nil:
		a.address = string(key)
	case errors.Is(err, core.SkipRule):
		return nil
	}
	return err
}

// find sets the attempt's address and account, waits for a slot if the authentication is Basic,
// and reads whether the client is trusted. r is the request as the limiter passes it to key functions.
// Its body may not be readable yet.
func (a *attempt) find(r core.Request) error {
	if a.account != "" {
		return nil
	}
	if err := a.findAddress(r); err != nil {
		return err
	}
	g := a.guard
	if g.config.Field != "" {
		// If the body cannot be read yet, parsing would cost time for nothing. A remote procedure
		// call has no body: the reader of the field returns an error, and says what to write instead.
		if _, err := r.Body(0); err != nil && r.Value(requestlog.NoBodyKey{}) == nil {
			return err
		}
	}
	account, basic, err := g.config.account(a, r)
	if err != nil {
		return err
	}
	a.account, a.basic = account, basic
	if basic {
		a.slot = g.slots.Check(a)
	}
	return a.readTrust()
}

// newSlots returns the limiter of the requests of Basic authentication that are judged at a time.
//
// A client sends the password of Basic authentication with each request, and several requests at
// once. The limit of address and account charges each request before the handler has judged it: the
// sixth would be denied although all passwords are right. Therefore the number of requests of an
// address and account that are judged at a time is at most the limit's quota or burst; others wait.
// Waiting delays the decision of the limits, and gives no further guess.
func newSlots(c *Config) (*inflight.Limiter, error) {
	return inflight.New(inflight.Config{
		Max: min(max(c.Failures.Capacity(), 1), inflight.MaxSlots), MaxWait: 10 * time.Second, MaxWaiters: 1000, Log: c.Log,
		Key: func(dst []byte, r core.Request) ([]byte, error) {
			a := r.Value(attemptKey{}).(*attempt)
			return append(dst, keyfuncs.JoinKeys(a.address, a.account)...), nil
		},
	})
}

// readTrust sets whether the client is trusted: by its device cookie, or else because its
// address is known. If the quota of the cookie or of the account's trusted clients is used
// up, the client is a stranger.
func (a *attempt) readTrust() (err error) {
	g := a.guard
	if a.trust, err = g.memory.read(a.Context(), a.address, a.account); err != nil {
		return fmt.Errorf("login: reading whether the client is trusted: %w", err)
	}
	trusted := []core.Hit{{Rule: ruleTrusted, Key: a.account}}
	value, _ := a.Cookie(g.config.CookieName)
	switch nonce, generation := g.config.verify(value, a.account); {
	case nonce != "" && a.trust.holds(generation):
		a.device = nonce
		trusted = append(trusted, core.Hit{Rule: ruleDevice, Key: keyfuncs.JoinKeys(nonce, a.account)})
	case a.trust.known:
		a.known = true
	default:
		return nil
	}
	d, err := g.limiter.Peek(context.WithoutCancel(a.Context()), 1, trusted...)
	if err == nil && !d.Allowed {
		a.device, a.known = "", false
	}
	return err
}

// pairKey returns the key of an address and account. Each Unblock of the account changes it.
func pairKey(t trust, address, account string) string {
	if t.unblocks == 0 {
		return keyfuncs.JoinKeys(address, account)
	}
	return keyfuncs.JoinKeys(address, account, strconv.FormatInt(t.unblocks, 10))
}

// The names of the guard's rules.
const (
	ruleAddress = "address"
	rulePair    = "address-account"
	ruleAccount = "account"
	ruleDevice  = "device"
	ruleTrusted = "trusted"
)

// rules returns the rules of the guard's limiter.
func (g *Guard) rules() []core.Rule {
	c := &g.config
	// keyed returns the key function of a rule: find finds what key needs. key also returns
	// whether the rule is for the attempt.
	keyed := func(find func(a *attempt, r core.Request) error, key func(a *attempt) (string, bool)) core.KeyFunc {
		return func(dst []byte, r core.Request) ([]byte, error) {
			a := r.Value(attemptKey{}).(*attempt)
			if err := find(a, r); err != nil {
				return dst, err
			}
			k, applies := key(a)
			if !applies {
				return dst, errOthers
			}
			return append(dst, k...), nil
		}
	}
	rules := []core.Rule{{
		Name: ruleAddress, Limits: []core.Limit{c.Attempts},
		Key: keyed((*attempt).findAddress, func(a *attempt) (string, bool) { return a.address, true }),
	}, {
		Name: rulePair, Limits: []core.Limit{c.Failures}, Counts: failed, Clears: succeeded,
		Key: keyed((*attempt).find, func(a *attempt) (string, bool) { return pairKey(a.trust, a.address, a.account), a.device == "" }),
	}, {
		Name: ruleAccount, Limits: []core.Limit{c.AccountFailures}, Counts: failed,
		Key: keyed((*attempt).find, func(a *attempt) (string, bool) { return a.account, a.device == "" && !a.known }),
	}, {
		Name: ruleTrusted, Limits: []core.Limit{c.TrustedFailures}, Counts: failed,
		Key: keyed((*attempt).find, func(a *attempt) (string, bool) { return a.account, a.device != "" || a.known }),
	}}
	if len(c.Secrets) > 0 {
		rules = append(rules, core.Rule{
			Name: ruleDevice, Limits: []core.Limit{c.DeviceFailures}, Counts: failed, Clears: succeeded,
			Key: keyed((*attempt).find, func(a *attempt) (string, bool) { return keyfuncs.JoinKeys(a.device, a.account), a.device != "" }),
		})
	}
	return rules
}
