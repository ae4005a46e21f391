package login

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// memory holds what the guard remembers beside its counters: which addresses have
// logged in to which accounts, and which accounts have been unblocked. It keeps them in
// the same store, as counters: a counter with a hit means yes. Check reads them only
// before it denies an attempt or finds an account suspicious. A counter that was empty
// is not read again for lookAgain. Its methods may be called concurrently.
type memory struct {
	config  *Config
	limiter *core.Limiter
	local   *core.Memory
	trust   *core.Limiter // counts Forgets: see generation.go
	denied  *core.Limiter // notes of this process: which counters were empty within lookAgain, and ruleWarm
}

const (
	ruleKnown      = "known"
	ruleUnblocked  = "unblocked"  // a hit for each Unblock within pardonFor
	ruleUnblocking = "unblocking" // the number of the last Unblock
	rulePardoned   = "pardoned"
	ruleDenied     = "denied"
	ruleWarm       = "warm" // a request with Basic authentication has succeeded within warmFor, and none has failed since

	// lookAgain is how long the guard does not read a counter again that was empty. An
	// Unblock by another instance takes effect within that time.
	lookAgain = time.Second
	warmFor   = time.Minute
	// mostUnblocks is how often an account can be unblocked within pardonFor.
	mostUnblocks = 1000
	// numbersFor is the window of ruleUnblocking, unless pardonFor is longer than half
	// of it. It is much longer than pardonFor, so that no number of an Unblock comes
	// back while an address is still pardoned under that number. It is short enough for
	// every store: memcached keeps nothing for longer than 30 days.
	numbersFor = 28 * 24 * time.Hour
)

func newMemory(c *Config, store core.Store) (*memory, error) {
	once := func(rule string, quota int64, window time.Duration) core.Rule {
		return core.Rule{Name: rule, Limits: []core.Limit{{Quota: quota, Window: window, Algorithm: core.FixedWindow}}}
	}
	pardon, numbers := c.pardonFor(), numbersFor
	if pardon > numbers/2 {
		numbers = core.MaxWindow
	}
	m := &memory{config: c}
	var err error
	// The limiter replaces a stored value that cannot be read. If it denied instead, a
	// damaged counter would make an address known.
	m.limiter, err = core.New(core.Config{
		Name:  c.Name + "-memory",
		Store: store,
		Log:   c.Log,
		Rules: []core.Rule{
			once(ruleKnown, 1, c.KnownFor), once(rulePardoned, 1, pardon), once(ruleUnblocking, core.MaxQuota, numbers),
			// A SlidingLog keeps each Unblock for the whole window.
			{Name: ruleUnblocked, Limits: []core.Limit{{Quota: mostUnblocks, Window: pardon, Algorithm: core.SlidingLog}}},
		},
	})
	if err != nil {
		return nil, err
	}
	m.local = core.Must(core.NewMemory(core.MemoryConfig{Clock: c.Clock, MaxKeys: 100_000}))
	m.denied, err = core.New(core.Config{Name: "denied", Store: m.local, Log: c.Log, Rules: []core.Rule{once(ruleDenied, 1, lookAgain), once(ruleWarm, 1, warmFor)}})
	return m, err
}

// pardonFor returns how long an Unblock lasts: at least as long as an address could
// be denied because of failures before the Unblock.
func (c *Config) pardonFor() time.Duration {
	return max(c.Failures.Window, c.Failures.Lockout.Max, c.Failures.Lockout.First, time.Hour)
}

func (m *memory) close() error { return m.local.Close() }

// wasEmpty reports whether the counter of the memo was empty within lookAgain.
func (m *memory) wasEmpty(ctx context.Context, memo string) bool {
	d, err := m.denied.Peek(ctx, 1, core.Hit{Rule: ruleDenied, Key: memo})
	return err == nil && !d.Allowed
}

func (m *memory) noteEmpty(ctx context.Context, memo string) {
	_, _ = m.denied.Take(ctx, 1, core.Hit{Rule: ruleDenied, Key: memo})
}

func (m *memory) noteFilled(ctx context.Context, memo string) {
	_ = m.denied.Reset(ctx, core.Hit{Rule: ruleDenied, Key: memo})
}

// noteResult notes the result of a request with Basic authentication.
func (m *memory) noteResult(a *attempt, r result) {
	ctx, hit := context.WithoutCancel(a.Context()), core.Hit{Rule: ruleWarm, Key: keyfuncs.JoinKeys(a.address, a.account)}
	switch r {
	case success:
		_, _ = m.denied.Take(ctx, 1, hit)
	case failure:
		_ = m.denied.Reset(ctx, hit)
	case neither:
	}
}

// warm reports whether a request of the address and account has succeeded within warmFor,
// and none has failed since, in this process.
func (m *memory) warm(a *attempt) bool {
	d, err := m.denied.Peek(a.Context(), 1, core.Hit{Rule: ruleWarm, Key: keyfuncs.JoinKeys(a.address, a.account)})
	return err == nil && !d.Allowed
}

// hits returns the number of hits that a key has in each of the rules. The numbers are
// 0 if the store fails or does not answer, or if the first rule had no hit within
// lookAgain. What is left in the process while the store does not answer is left of this
// instance's part of a quota, so that it tells no number.
func (m *memory) hits(ctx context.Context, key string, rules ...string) ([]int64, error) {
	found := make([]int64, len(rules))
	memo := keyfuncs.JoinKeys(rules[0], key)
	if m.wasEmpty(ctx, memo) {
		return found, nil
	}
	asked := make([]core.Hit, len(rules))
	for i, rule := range rules {
		asked[i] = core.Hit{Rule: rule, Key: key}
	}
	d, err := m.limiter.Peek(ctx, 0, asked...)
	if err != nil {
		return found, err
	}
	if !d.Degraded {
		for l := range d.Limits() {
			found[slices.Index(rules, l.Rule)] = l.Limit.Quota - l.Remaining
		}
	}
	if found[0] == 0 {
		m.noteEmpty(ctx, memo)
	}
	return found, nil
}

// knows reports whether the attempt's address has logged in to the account within
// KnownFor and after the last Forget. It returns false while the store does not answer.
// It does not ask the store again within lookAgain after the answer was no.
func (m *memory) knows(a *attempt) bool {
	if m.config.ForgetAddresses {
		return false
	}
	ctx, memo := a.Context(), knownMemo(a.address, a.account)
	if m.wasEmpty(ctx, memo) {
		return false
	}
	known, err := m.remembers(ctx, m.trustOf(a), a.address, a.account)
	if err == nil && !known {
		m.noteEmpty(ctx, memo)
	}
	return known
}

// remembers reports whether the address is known for the account.
func (m *memory) remembers(ctx context.Context, t trust, address, account string) (bool, error) {
	if !t.sure {
		return false, t.err
	}
	d, err := m.limiter.Peek(ctx, 1, knownHit(t.generation, address, account))
	return err == nil && !d.Allowed, err
}

// knownHit returns the counter that has a hit if the address is known.
func knownHit(generation int64, address, account string) core.Hit {
	return core.Hit{Rule: ruleKnown, Key: keyfuncs.JoinKeys(strconv.FormatInt(generation, 10), address, account)}
}

func knownMemo(address, account string) string { return keyfuncs.JoinKeys(ruleKnown, address, account) }

// remember makes an address known for an account. It does nothing if an outage or a full
// counter of Forgets leaves the account's generation unknown.
func (m *memory) remember(ctx context.Context, t trust, address, account string) error {
	if !t.sure {
		return t.err
	}
	ctx = context.WithoutCancel(ctx)
	hit := knownHit(t.generation, address, account)
	err := m.limiter.Reset(ctx, hit) // KnownFor begins again
	_, takeErr := m.limiter.Take(ctx, 1, hit)
	m.noteFilled(ctx, knownMemo(address, account))
	return errors.Join(err, takeErr)
}

// unblock adds an Unblock of an account.
func (m *memory) unblock(ctx context.Context, account string) error {
	d, err := m.limiter.Take(ctx, 1, core.Hit{Rule: ruleUnblocked, Key: account}, core.Hit{Rule: ruleUnblocking, Key: account})
	if err == nil && !d.Allowed {
		err = fmt.Errorf("login: Unblock: the account has been unblocked %d times in %v, which is the maximum", mostUnblocks, m.config.pardonFor())
	}
	m.noteFilled(ctx, keyfuncs.JoinKeys(ruleUnblocked, account))
	return err
}

// pardonKey returns the key under which an address is pardoned for an account. Each
// Unblock gives a new key. ok is false if the account was not unblocked within
// pardonFor, or if the store fails.
func (m *memory) pardonKey(ctx context.Context, address, account string) (key string, ok bool, err error) {
	found, err := m.hits(ctx, account, ruleUnblocked, ruleUnblocking)
	return keyfuncs.JoinKeys(strconv.FormatInt(found[1], 10), address, account), found[0] > 0, err
}

// pardoned resets the failures of the attempt's address for the account, once for each
// Unblock. It returns whether it has reset them.
func (m *memory) pardoned(a *attempt, limiter *core.Limiter) bool {
	key, ok, _ := m.pardonKey(a.Context(), a.address, a.account)
	if !ok {
		return false
	}
	ctx := context.WithoutCancel(a.Context())
	d, err := m.limiter.Take(ctx, 1, core.Hit{Rule: rulePardoned, Key: key})
	if err != nil || !d.Allowed {
		return false
	}
	return limiter.Reset(ctx, core.Hit{Rule: rulePair, Key: keyfuncs.JoinKeys(a.address, a.account)}) == nil
}

// willPardon reports whether pardoned will reset the address's failures for the account
// at the next attempt.
func (m *memory) willPardon(ctx context.Context, address, account string) (bool, error) {
	key, ok, err := m.pardonKey(ctx, address, account)
	if !ok {
		return false, err
	}
	d, err := m.limiter.Peek(ctx, 1, core.Hit{Rule: rulePardoned, Key: key})
	return err == nil && d.Allowed, err
}
