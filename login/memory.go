package login

import (
	"context"
	"errors"
	"fmt"
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
	denied  *core.Limiter // in this process: what was no a moment ago
}

const (
	ruleKnown     = "known"
	ruleUnblocked = "unblocked"
	rulePardoned  = "pardoned"
	ruleDenied    = "denied"

	// lookAgain is for how long a no is believed.
	lookAgain = 5 * time.Second
	// mostUnblocks is how often an account can be unblocked in the time that
	// an unblocking lasts.
	mostUnblocks = 1000
)

func newMemory(c *Config, store core.Store) (*memory, error) {
	once := func(rule string, quota int64, window time.Duration) core.Rule {
		return core.Rule{Name: rule, Key: core.TakeOnly, Limits: []core.Limit{{Quota: quota, Window: window, Algorithm: core.FixedWindow}}}
	}
	pardon := c.pardonFor()
	m := &memory{config: c}
	var err error
	m.limiter, err = core.New(core.Config{
		Name:  c.Name + "-memory",
		Store: store,
		Rules: []core.Rule{once(ruleKnown, 1, c.KnownFor), once(ruleUnblocked, mostUnblocks, pardon), once(rulePardoned, 1, pardon)},
	})
	if err != nil {
		return nil, err
	}
	if m.local, err = core.NewMemory(core.MemoryConfig{Clock: c.Clock, MaxKeys: 100_000}); err != nil {
		return nil, err
	}
	m.denied, err = core.New(core.Config{Name: "denied", Store: m.local, Rules: []core.Rule{once(ruleDenied, 1, lookAgain)}})
	return m, err
}

// pardonFor is how long an unblocking lasts: as long as somebody could have
// been blocked before it.
func (c *Config) pardonFor() time.Duration {
	return max(c.Failures.Window, c.Failures.Lockout.Max, c.Failures.Lockout.First, time.Hour)
}

func (m *memory) close() error { return m.local.Close() }

// yes says whether a counter has a hit. What cannot be found out is no.
func (m *memory) yes(ctx context.Context, rule, key string) (hits int64) {
	memo := core.Hit{Rule: ruleDenied, Key: pair(rule, key)}
	if d, err := m.denied.Peek(ctx, 1, memo); err == nil && !d.Allowed {
		return 0
	}
	d, err := m.limiter.Peek(ctx, 0, core.Hit{Rule: rule, Key: key})
	if err == nil {
		hits = d.Limit.Quota - d.Remaining
	}
	if hits == 0 {
		_, _ = m.denied.Take(ctx, 1, memo)
	}
	return hits
}

// knows says whether the attempt's address has logged in to its account lately.
func (m *memory) knows(a *attempt) bool {
	return !m.config.ForgetAddresses && m.yes(a.Context(), ruleKnown, pair(a.address, a.account)) > 0
}

// remember notes that the attempt's address has logged in to its account.
func (m *memory) remember(a *attempt) error {
	if m.config.ForgetAddresses || !a.named || a.account == "" || a.address == "" {
		return nil
	}
	ctx := context.WithoutCancel(a.Context())
	hit := core.Hit{Rule: ruleKnown, Key: pair(a.address, a.account)}
	err := m.limiter.Reset(ctx, hit) // the time begins anew
	_, takeErr := m.limiter.Take(ctx, 1, hit)
	_ = m.denied.Reset(ctx, core.Hit{Rule: ruleDenied, Key: pair(ruleKnown, hit.Key)})
	return errors.Join(err, takeErr)
}

// unblock notes that an account has been unblocked.
func (m *memory) unblock(ctx context.Context, account string) error {
	d, err := m.limiter.Take(ctx, 1, core.Hit{Rule: ruleUnblocked, Key: account})
	if err == nil && !d.Allowed {
		err = fmt.Errorf("login: the account has been unblocked %d times in %v", mostUnblocks, m.config.pardonFor())
	}
	_ = m.denied.Reset(ctx, core.Hit{Rule: ruleDenied, Key: pair(ruleUnblocked, account)})
	return err
}

// pardoned forgets the failures of the attempt's address for its account, once
// for each time that the account was unblocked, and says whether it has.
func (m *memory) pardoned(a *attempt, limiter *core.Limiter) bool {
	n := m.yes(a.Context(), ruleUnblocked, a.account)
	if n == 0 {
		return false
	}
	ctx := context.WithoutCancel(a.Context())
	d, err := m.limiter.Take(ctx, 1, core.Hit{Rule: rulePardoned, Key: pair(fmt.Sprint(n), pair(a.address, a.account))})
	if err != nil || !d.Allowed {
		return false
	}
	return limiter.Reset(ctx, core.Hit{Rule: rulePair, Key: pair(a.address, a.account)}) == nil
}
