package login

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// memory is what the guard remembers beside its counters, in the same store:
// which addresses have logged in to which accounts, and which accounts have
// been unblocked. A counter that has a hit says yes. It is only looked at when
// somebody would be refused, and what it says no to is not looked up again for a
// while.
type memory struct {
	config  *Config
	limiter *core.Limiter
	local   *core.Memory
	trust   *core.Limiter // counts Forgets: see generation
	denied  *core.Limiter // in this process: what was no a moment ago
}

const (
	ruleKnown      = "known"
	ruleUnblocked  = "unblocked"  // a hit for each unblocking that still lasts
	ruleUnblocking = "unblocking" // the number of the last unblocking
	rulePardoned   = "pardoned"
	ruleDenied     = "denied"

	// lookAgain is for how long a no is believed: an Unblock by another instance
	// is noticed after that.
	lookAgain = time.Second
	// mostUnblocks is how often an account can be unblocked in the time that
	// an unblocking lasts.
	mostUnblocks = 1000
	// numbersFor is how long unblockings are numbered on, where one lasts no
	// longer than half of it: much longer, so that no number comes back while
	// somebody still has been pardoned under it, and short enough for every store
	// (memcached keeps nothing for more than 30 days).
	numbersFor = 28 * 24 * time.Hour
)

func newMemory(c *Config, store core.Store) (*memory, error) {
	once := func(rule string, quota int64, window time.Duration) core.Rule {
		return core.Rule{Name: rule, Key: core.TakeOnly, Limits: []core.Limit{{Quota: quota, Window: window, Algorithm: core.FixedWindow}}}
	}
	pardon, numbers := c.pardonFor(), numbersFor
	if pardon > numbers/2 {
		numbers = core.MaxWindow
	}
	m := &memory{config: c}
	var err error
	// A value that cannot be read is replaced: denied, it would make an address
	// known.
	m.limiter, err = core.New(core.Config{
		Name:  c.Name + "-memory",
		Store: store,
		Log:   c.Log,
		Rules: []core.Rule{
			once(ruleKnown, 1, c.KnownFor), once(rulePardoned, 1, pardon), once(ruleUnblocking, core.MaxQuota, numbers),
			// Each unblocking lasts its whole time, whatever was before it.
			{Name: ruleUnblocked, Key: core.TakeOnly, Limits: []core.Limit{{Quota: mostUnblocks, Window: pardon, Algorithm: core.SlidingLog}}},
		},
	})
	if err != nil {
		return nil, err
	}
	if m.local, err = core.NewMemory(core.MemoryConfig{Clock: c.Clock, MaxKeys: 100_000}); err != nil {
		return nil, err
	}
	m.denied, err = core.New(core.Config{Name: "denied", Store: m.local, Log: c.Log, Rules: []core.Rule{once(ruleDenied, 1, lookAgain)}})
	return m, err
}

// pardonFor is how long an unblocking lasts: as long as somebody could have
// been blocked before it.
func (c *Config) pardonFor() time.Duration {
	return max(c.Failures.Window, c.Failures.Lockout.Max, c.Failures.Lockout.First, time.Hour)
}

func (m *memory) close() error { return m.local.Close() }

// hits returns how many hits the counters of a key have, those of the first
// rule first. What cannot be found out is none, and so is, for a while, what was
// none for the first rule.
func (m *memory) hits(ctx context.Context, key string, rules ...string) []int64 {
	found := make([]int64, len(rules))
	memo := core.Hit{Rule: ruleDenied, Key: pair(rules[0], key)}
	if d, err := m.denied.Peek(ctx, 1, memo); err == nil && !d.Allowed {
		return found
	}
	asked := make([]core.Hit, len(rules))
	for i, rule := range rules {
		asked[i] = core.Hit{Rule: rule, Key: key}
	}
	if d, err := m.limiter.Peek(ctx, 0, asked...); err == nil {
		for l := range d.Limits() {
			found[slices.Index(rules, l.Rule)] = l.Limit.Quota - l.Remaining
		}
	}
	if found[0] == 0 {
		_, _ = m.denied.Take(ctx, 1, memo)
	}
	return found
}

// knows reports whether the attempt's address has logged in to its account
// lately, and after the last Forget. While the store does not answer, it has
// not. A no is not looked up again for a while.
func (m *memory) knows(a *attempt) bool {
	if m.config.ForgetAddresses {
		return false
	}
	ctx := a.Context()
	memo := core.Hit{Rule: ruleDenied, Key: knownMemo(a)}
	if d, err := m.denied.Peek(ctx, 1, memo); err == nil && !d.Allowed {
		return false
	}
	known, err := m.remembers(ctx, m.trustOf(a), a.address, a.account)
	if err == nil && !known {
		_, _ = m.denied.Take(ctx, 1, memo)
	}
	return known
}

// remembers reports whether the address is known for the account.
func (m *memory) remembers(ctx context.Context, t trust, address, account string) (bool, error) {
	if t.err != nil || !t.sure {
		return false, t.err
	}
	d, err := m.limiter.Peek(ctx, 1, knownHit(t.generation, address, account))
	return err == nil && !d.Allowed, err
}

// knownHit is the counter that has a hit if the address is known.
func knownHit(generation int64, address, account string) core.Hit {
	return core.Hit{Rule: ruleKnown, Key: pair(strconv.FormatInt(generation, 10), pair(address, account))}
}

func knownMemo(a *attempt) string { return pair(ruleKnown, pair(a.address, a.account)) }

// remember notes that the attempt's address has logged in to its account.
func (m *memory) remember(a *attempt) error {
	if m.config.ForgetAddresses || !a.named || a.account == "" || a.address == "" {
		return nil
	}
	ctx := context.WithoutCancel(a.Context())
	t := m.trustOf(a)
	if t.err != nil || !t.sure {
		return t.err
	}
	hit := knownHit(t.generation, a.address, a.account)
	err := m.limiter.Reset(ctx, hit) // the time begins anew
	_, takeErr := m.limiter.Take(ctx, 1, hit)
	_ = m.denied.Reset(ctx, core.Hit{Rule: ruleDenied, Key: knownMemo(a)})
	return errors.Join(err, takeErr)
}

// unblock notes that an account has been unblocked.
func (m *memory) unblock(ctx context.Context, account string) error {
	d, err := m.limiter.Take(ctx, 1, core.Hit{Rule: ruleUnblocked, Key: account}, core.Hit{Rule: ruleUnblocking, Key: account})
	if err == nil && !d.Allowed {
		err = fmt.Errorf("login: the account has been unblocked %d times in %v", mostUnblocks, m.config.pardonFor())
	}
	_ = m.denied.Reset(ctx, core.Hit{Rule: ruleDenied, Key: pair(ruleUnblocked, account)})
	return err
}

// pardonKey is the key under which an address is pardoned for an account, once
// for each unblocking; ok says that the account has been unblocked lately.
func (m *memory) pardonKey(ctx context.Context, address, account string) (key string, ok bool) {
	found := m.hits(ctx, account, ruleUnblocked, ruleUnblocking)
	return pair(strconv.FormatInt(found[1], 10), pair(address, account)), found[0] > 0
}

// pardoned forgets the failures of the attempt's address for its account, once
// for each time that the account was unblocked, and says whether it has.
func (m *memory) pardoned(a *attempt, limiter *core.Limiter) bool {
	key, ok := m.pardonKey(a.Context(), a.address, a.account)
	if !ok {
		return false
	}
	ctx := context.WithoutCancel(a.Context())
	d, err := m.limiter.Take(ctx, 1, core.Hit{Rule: rulePardoned, Key: key})
	if err != nil || !d.Allowed {
		return false
	}
	return limiter.Reset(ctx, core.Hit{Rule: rulePair, Key: pair(a.address, a.account)}) == nil
}

// willPardon says whether the address's next attempt on the account will find
// its failures forgotten.
func (m *memory) willPardon(ctx context.Context, address, account string) (bool, error) {
	key, ok := m.pardonKey(ctx, address, account)
	if !ok {
		return false, nil
	}
	d, err := m.limiter.Peek(ctx, 1, core.Hit{Rule: rulePardoned, Key: key})
	return err == nil && d.Allowed, err
}
