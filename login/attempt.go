package login

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// attempt is a request that the guard checks, with the account, the address and the
// trust that the guard has found for it. The limiter's key functions get it from
// Request.Value.
type attempt struct {
	core.Request
	guard *Guard

	address string // the client's address as a key
	account string // the normalised username
	named   bool   // account has been set
	logsIn  bool   // the method is in Config.Methods
	basic   bool   // only BasicUser has found the username
	inBasic bool   // BasicUser has found a username since the last source was called

	place     *place // in the line of its address and account; nil: none
	passed    bool   // the limit of address and account does not apply: see Guard.inLine
	trust     trust  // the account's generation when the attempt began
	judged    uint64 // the number in Guard.judging; 0: not in it
	device    string // the nonce of a valid device cookie
	distrust  bool   // the quota of the cookie or of the trusted clients is used up
	known     bool   // the address has logged in to the account within KnownFor
	settled   atomic.Bool
	denial    *core.Denial // the Verdict.Deny of OnSuspicion
	suspicion Suspicion
	seen      core.Observation // of the limiter's last decision, if there is an observer
}

type attemptKey struct{}

// Value implements core.Request.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Request.Value(key)
}

func isSkip(err error) bool { return errors.Is(err, core.SkipRule) }

// errOthers wraps core.SkipRule, so that the log does not say that a rule limits nobody.
var errOthers = fmt.Errorf("the rule is for other attempts: %w", core.SkipRule)

// orSkip returns err, or errOthers if err is nil and skip is true.
func orSkip(err error, skip bool) error {
	if err == nil && skip {
		return errOthers
	}
	return err
}

// clientAddress returns the client's address as a key.
func (a *attempt) clientAddress(r core.Request) (string, error) {
	if a.address == "" {
		key, err := a.guard.config.ClientIP(nil, r)
		if err != nil {
			return "", err
		}
		a.address = string(key)
	}
	return a.address, nil
}

// find sets the attempt's account and device cookie. r is the request as the limiter
// passes it to key functions. Its body may not be readable yet.
func (a *attempt) find(r core.Request) error {
	if a.named {
		return nil
	}
	if a.guard.config.Field != "" {
		// If the body cannot be read yet, parsing would cost time for nothing. A remote procedure
		// call has no body: the reader of the field returns an error, and says what to write instead.
		if _, err := r.Body(0); err != nil && r.Value(requestlog.NoBodyKey{}) == nil {
			return err
		}
	}
	account, basic, err := a.guard.config.account(a, r)
	if err != nil {
		return err
	}
	a.account, a.basic, a.named = account, basic, true
	a.device = a.guard.device(a)
	return nil
}

// byDevice reports whether the attempt is charged to its device cookie.
func (a *attempt) byDevice() bool { return a.device != "" && !a.distrust }

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
	key := func(f func(a *attempt, r core.Request) (string, error)) core.KeyFunc {
		return func(dst []byte, r core.Request) ([]byte, error) {
			a, ok := r.Value(attemptKey{}).(*attempt)
			if !ok {
				return dst, errors.New("login: the request did not come through Guard.Check")
			}
			k, err := f(a, r)
			return append(dst, k...), err
		}
	}
	rules := []core.Rule{
		{Name: ruleAddress, Limits: []core.Limit{c.Attempts}, Key: key((*attempt).clientAddress)},
		{
			Name: rulePair, Limits: []core.Limit{c.Failures}, Counts: failed, Clears: succeeded,
			Key: key(func(a *attempt, r core.Request) (string, error) {
				address, err := a.clientAddress(r)
				if err == nil {
					err = a.find(r)
				}
				return keyfuncs.JoinKeys(address, a.account), orSkip(err, a.byDevice() || a.passed)
			}),
		},
		{
			Name: ruleAccount, Limits: []core.Limit{c.AccountFailures}, Counts: failed,
			Key: key(func(a *attempt, r core.Request) (string, error) {
				err := a.find(r)
				return a.account, orSkip(err, a.byDevice() || a.known)
			}),
		},
	}
	if len(c.Secrets) > 0 {
		rules = append(rules, core.Rule{
			Name: ruleDevice, Limits: []core.Limit{c.DeviceFailures}, Counts: failed, Clears: succeeded,
			Key: key(func(a *attempt, r core.Request) (string, error) {
				err := a.find(r)
				return keyfuncs.JoinKeys(a.device, a.account), orSkip(err, !a.byDevice())
			}),
		})
	}
	if c.trusts() {
		rules = append(rules, core.Rule{
			Name: ruleTrusted, Limits: []core.Limit{c.TrustedFailures}, Counts: failed,
			Key: key(func(a *attempt, r core.Request) (string, error) {
				err := a.find(r)
				return a.account, orSkip(err, !a.byDevice() && !a.known)
			}),
		})
	}
	return rules
}

// result is what an outcome means for an attempt.
type result uint8

const (
	neither result = iota // the attempt is given back
	success
	failure
)

// judge returns the result of an attempt. A canceled attempt is a failure: otherwise an
// attacker could guess for free by closing the connection.
func (c *Config) judge(a *attempt, o core.Outcome) result {
	switch {
	case o.Panicked || o.Canceled:
		return failure
	case o.Status >= 500 || o.Status == 101:
		return neither
	case c.fails(a, o):
		return failure
	case a.logsIn && c.Success(o):
		return success
	}
	return neither // for example, the page of the login form
}

// fails is Config.Failure or its default.
func (c *Config) fails(a *attempt, o core.Outcome) bool {
	switch {
	case c.Failure != nil:
		return c.Failure(o)
	case a.basic:
		return o.Status == http.StatusUnauthorized || o.Status == http.StatusProxyAuthRequired
	}
	return !c.Success(o)
}

// outcome returns the outcome by which the rules know a result.
func (r result) outcome() core.Outcome {
	return core.Outcome{Status: []int{neither: 500, success: 200, failure: 401}[r]}
}

func succeeded(_ core.Request, o core.Outcome) bool { return o.Status == 200 }
func failed(_ core.Request, o core.Outcome) bool    { return o.Status == 401 }
