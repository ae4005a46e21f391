package login

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// The guard remembers three things in the store, each as a counter:
//
//   - The generation of an account, which every Forget changes. A device cookie and a known
//     address have the generation in which they were made. An address is known while the
//     account's generation is the same. A cookie is valid while it is the same, or 0.
//   - The unblocks of an account, which every Unblock changes. They are part of the keys of
//     address and account, so that an Unblock gives each address an empty counter.
//   - The addresses that have logged in to an account.
//
// Generations and unblocks are sums: each Forget or Unblock takes a random number of hits.
// Three facts make this safe:
//
//   - Trust never lasts longer than the window of the sum. Each Forget that ends the trust in
//     a cookie is therefore in the sum until the cookie expires.
//   - Until a Forget leaves the window, each Forget makes the sum larger.
//   - After a Forget has left the window, a later Forget makes the same sum again with a
//     probability of about one in a million.
//
// If the sum is 0, no Forget is younger than the window, and each cookie that has not
// expired was made after the last Forget. If the counter has no room for another Forget, or
// cannot be read, nobody is trusted. Trust can end too early when a Forget leaves the window.
const (
	ruleForgotten = "forgotten"
	ruleUnblocked = "unblocked"
	ruleKnown     = "known"

	mostHits = 1 << 20 // the most hits that a Forget or Unblock takes
	maxSum   = core.MaxQuota / 2

	// A known address takes knownHits plus the generation, once. That is more than half of the
	// quota: of two takes at once, the second is denied. No such take fills the counter: a full
	// counter is one that cannot be read.
	knownHits = core.MaxQuota/2 + 1
)

const (
	day           = 24 * time.Hour
	maxTrust      = 350 * day // the window of a sum is longer, with a margin for clocks that differ
	maxShortTrust = 27 * day
)

var (
	longSum = core.Limit{Quota: maxSum, Window: 360 * day, Precision: 12 * day, Algorithm: core.BucketedWindow}
	// shortSum is for stores that keep nothing for longer than 30 days, such as memcached.
	shortSum = core.Limit{Quota: maxSum, Window: 28 * day, Precision: day, Algorithm: core.BucketedWindow}
)

// memory is what the guard remembers in the store. Its methods may be called concurrently.
// They do not stop if the context is canceled; the store's own deadline ends them.
type memory struct{ limiter *core.Limiter }

// openMemory returns the guard's memory. If the store keeps nothing for long enough, it
// shortens CookieFor and KnownFor.
func openMemory(c *Config, store core.Store) (memory, error) {
	m, err := newMemory(c, store, longSum)
	if errors.Is(err, core.ErrConfig) {
		c.CookieFor, c.KnownFor = min(c.CookieFor, maxShortTrust), min(c.KnownFor, maxShortTrust)
		return newMemory(c, store, shortSum)
	}
	return m, err
}

func newMemory(c *Config, store core.Store, sum core.Limit) (memory, error) {
	limiter, err := core.New(core.Config{
		Name:           c.Name + "-memory",
		Store:          store,
		Log:            c.Log,
		DenyUnreadable: true,
		Rules: []core.Rule{
			{Name: ruleForgotten, Limits: []core.Limit{sum}},
			{Name: ruleUnblocked, Limits: []core.Limit{sum}},
			{Name: ruleKnown, Limits: []core.Limit{{Quota: core.MaxQuota, Window: c.KnownFor, Algorithm: core.FixedWindow}}},
		},
	})
	return memory{limiter}, err
}

// trust is what the guard remembers of an address and an account.
type trust struct {
	generation int64
	unblocks   int64 // the sum of the Unblocks
	known      bool
	// sure is false if the shared counters do not answer, or the generation is not known. No
	// address is known then.
	sure bool
	// down is true if the shared store does not answer and the guard counts in this process.
	down bool
}

// read reads the trust in one operation of the store.
func (m memory) read(ctx context.Context, address, account string) (t trust, err error) {
	d, err := m.limiter.Peek(context.WithoutCancel(ctx), 0,
		core.Hit{Rule: ruleForgotten, Key: account},
		core.Hit{Rule: ruleUnblocked, Key: account},
		core.Hit{Rule: ruleKnown, Key: keyfuncs.JoinKeys(address, account)})
	if err != nil || d.Degraded {
		return trust{down: err == nil}, err
	}
	var takenBy int64
	for l := range d.Limits() {
		used := l.Limit.Quota - l.Remaining
		switch l.Rule {
		case ruleForgotten:
			t.generation, t.sure = used, l.Remaining >= mostHits
		case ruleUnblocked:
			t.unblocks = used
		case ruleKnown:
			takenBy = used
		}
	}
	t.known = t.sure && takenBy == knownHits+t.generation
	return t, nil
}

// holds reports whether a device cookie of the generation given is still valid. While the
// shared store does not answer, each cookie that has not expired is valid: otherwise an
// attacker could lock out the owner meanwhile.
func (t trust) holds(given int64) bool {
	return t.down || t.sure && (t.generation == 0 || t.generation == given)
}

// remember makes an address known for an account in the generation of t. It does nothing
// if the generation or the address is not known.
func (m memory) remember(ctx context.Context, t trust, address, account string) error {
	if !t.sure || address == "" {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	hit := core.Hit{Rule: ruleKnown, Key: keyfuncs.JoinKeys(address, account)}
	err := m.limiter.Reset(ctx, hit) // KnownFor begins again
	_, takeErr := m.limiter.Take(ctx, knownHits+t.generation, hit)
	return errors.Join(err, takeErr)
}

var errFull = errors.New("the counter of the account is full")

// change adds a random number to the account's generation or unblocks. It returns errFull if
// the counter has no room.
func (m memory) change(ctx context.Context, rule, account string) error {
	d, err := m.limiter.Take(context.WithoutCancel(ctx), 1+rand.Int64N(mostHits), core.Hit{Rule: rule, Key: account})
	switch {
	case err != nil:
		return err
	case d.Degraded:
		return fmt.Errorf("the shared store does not answer: other instances do not know of the change: call it again: %w", core.ErrDegraded)
	case !d.Allowed:
		return errFull
	}
	return nil
}

// Forget ends the trust in all clients of an account: every device cookie and every known address,
// on every instance that shares the store, before Forget returns. The clients count as strangers
// until they log in again. Call Forget after a new password has been stored, and if somebody may
// have stolen a browser's cookies. An attempt that began before the Forget does not make its
// address known. While a shared store does not answer, older device cookies are valid.
//
// Forget does not check whether the account exists, does not reset the account's failures
// (see [Guard.Unblock]), and does not stop if ctx is canceled. After an error, the clients
// may still be trusted: call Forget again. It may be called concurrently.
//
// A shared store keeps a Forget for longer than any trust lasts. Without a shared store, a
// Forget is lost when the process ends: older device cookies are then valid again until they
// expire. If that matters, use a shared Store or replace Config.Secrets.
func (g *Guard) Forget(ctx context.Context, username string) error {
	err := g.memory.change(ctx, ruleForgotten, g.config.Normalize(username))
	if err != nil && !errors.Is(err, errFull) { // if the counter is full, nobody is trusted
		return fmt.Errorf("login: Forget: %w", err)
	}
	return nil
}

// Trust counts a success that did not go through the guard, such as a sign-up, a passkey or
// a login by another service: it resets the failures of the address for the account, and
// makes the address known for the account. address is the client's address, such as
// "203.0.113.9". Behind a proxy, r.RemoteAddr is the address of the proxy, which would make
// all clients known. To set a device cookie too, call [Guard.DeviceCookie].
//
// Trust does not stop if ctx is canceled. It returns an error if address is not an IP address, or
// if the store does not answer: log the user in all the same. It may be called concurrently.
func (g *Guard) Trust(ctx context.Context, username, address string) error {
	account := g.config.Normalize(username)
	key, err := g.addressKey(ctx, "Trust", address)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	t, err := g.memory.read(ctx, key, account)
	if err == nil {
		err = g.limiter.Reset(ctx, core.Hit{Rule: rulePair, Key: pairKey(t, key, account)})
	}
	if err != nil {
		return err
	}
	if t.down {
		return fmt.Errorf("login: Trust: the shared store does not answer: the address is not known: %w", core.ErrDegraded)
	}
	return g.memory.remember(ctx, t, key, account)
}
