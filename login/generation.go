package login

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// The generation of an account is a number that every Forget changes. Device cookies
// and the keys of known addresses contain the generation in which they were made. A
// cookie is valid while the account's generation is the same, or 0. An address is
// known while the account's generation is the same.
//
// The store holds one counter for each account for which Forget was called. Each
// Forget takes a random number of hits. The generation is the sum of the hits in the
// window of longTrust or shortTrust. Three facts make this safe:
//
//   - Trust never lasts longer than that window. Each Forget that ends the trust in a
//     cookie is therefore in the sum until the cookie expires.
//   - Until a Forget leaves the window, each Forget makes the sum larger.
//   - After a Forget has left the window, a later Forget makes the same sum again
//     with a probability of about one in a million, because the numbers are random.
//
// If the sum is 0, no Forget is younger than the window, and each cookie that has
// not expired was made after the last Forget. If the sum is the whole quota, Forget
// was called thousands of times, the sum cannot grow, and nobody is trusted.
//
// Trust can end too early when a Forget leaves the window: the trust in addresses
// that became known after that Forget, and in cookies that were made after that
// Forget and after another one.
const (
	ruleForgotten = "forgotten"
	// mostHits is the largest number of hits that a Forget takes.
	mostHits = 1 << 20
)

// The limits that count the hits of Forget. The window is longer than any trust lasts,
// with a margin for clocks that differ.
var (
	// longTrust is for stores that accept every window. Trust lasts for at most maxTrust.
	longTrust = core.Limit{Quota: core.MaxQuota, Window: 360 * day, Precision: 12 * day, Algorithm: core.BucketedWindow}
	// shortTrust is for stores that keep nothing for longer than 30 days, as memcached.
	// Trust lasts for at most maxShortTrust.
	shortTrust = core.Limit{Quota: core.MaxQuota, Window: 28 * day, Precision: day, Algorithm: core.BucketedWindow}
)

const (
	day           = 24 * time.Hour
	maxTrust      = 350 * day
	maxShortTrust = 27 * day
)

// trusts reports whether the guard trusts any clients.
func (c *Config) trusts() bool { return len(c.Secrets) > 0 || !c.ForgetAddresses }

// openMemory returns the guard's memory in the store. It counts Forgets with longTrust
// if the store accepts that, and with shortTrust otherwise. With shortTrust it also
// shortens CookieFor and KnownFor.
func openMemory(c *Config, store core.Store) (*memory, error) {
	trust, err := newTrust(c, store, longTrust)
	if errors.Is(err, core.ErrConfig) {
		var again error
		if trust, again = newTrust(c, store, shortTrust); again == nil {
			err = c.shorten(maxShortTrust)
		}
	}
	if err != nil {
		return nil, err
	}
	m, err := newMemory(c, store)
	if err != nil {
		return nil, err
	}
	m.trust = trust
	return m, nil
}

// newTrust returns the limiter that counts Forgets. It is not the limiter of newMemory
// because the two treat a stored value that cannot be read differently. Here it counts
// as a full counter, so that nobody is trusted. There it must not count as a hit, or
// the address would be known.
func newTrust(c *Config, store core.Store, forgets core.Limit) (*core.Limiter, error) {
	return core.New(core.Config{
		Name:           c.Name + "-trust",
		Store:          store,
		Log:            c.Log,
		DenyUnreadable: true,
		Rules:          []core.Rule{{Name: ruleForgotten, Limits: []core.Limit{forgets}}},
	})
}

// shorten reduces CookieFor and KnownFor to longest. If the user has set one of them
// to more, it returns an error.
func (c *Config) shorten(longest time.Duration) error {
	var errs []error
	shorten := func(field string, d *time.Duration, standard time.Duration) {
		if *d > longest && *d != standard {
			errs = append(errs, fmt.Errorf("%w: %s: %v: must be %v or less: Forget needs a counter that lasts longer, and the Store keeps none", core.ErrConfig, field, *d, longest))
		}
		*d = min(*d, longest)
	}
	if len(c.Secrets) > 0 {
		shorten("CookieFor", &c.CookieFor, DefaultCookieFor)
	}
	if !c.ForgetAddresses {
		shorten("KnownFor", &c.KnownFor, DefaultKnownFor)
	}
	return errors.Join(errs...)
}

// forget changes the account's generation. If the counter is full, it returns no
// error, because nobody is trusted then.
func (m *memory) forget(ctx context.Context, account string) error {
	for most := int64(mostHits); ; {
		d, err := m.trust.Take(ctx, 1+rand.Int64N(most), core.Hit{Rule: ruleForgotten, Key: account})
		switch {
		case err != nil:
			return fmt.Errorf("login: Forget: %w", err)
		case d.Degraded:
			return errors.New("login: Forget: the shared store does not answer: other instances may still trust the account's clients: call Forget again")
		case d.Allowed || d.Remaining == 0:
			return nil
		}
		most = min(most, d.Remaining)
	}
}

// Forget ends the trust in all clients of an account: every device cookie and every
// known address, on every instance that shares the store. The trust has ended when
// Forget returns. The clients count as strangers until they log in again. Call Forget
// after a new password has been stored, and if somebody may have stolen a browser's
// cookies. An attempt that began before the Forget does not make its client trusted,
// even if it succeeds later. While a shared store does not answer, older device cookies
// are valid.
//
// Forget does not check whether the account exists. It does not reset the account's
// failures: see [Guard.Unblock]. It does not stop if ctx is canceled; the store's own
// deadline ends it. An error means that the store has not recorded the Forget, and
// that the clients may still be trusted: call Forget again. Forget may be called
// concurrently.
//
// A shared store keeps a Forget for longer than any trust lasts. The counters in this
// process are lost when the process ends, and with them each Forget: older device
// cookies are then valid again until they expire. If that matters, use a shared Store
// or replace Config.Secrets.
func (g *Guard) Forget(ctx context.Context, username string) error {
	return g.memory.forget(context.WithoutCancel(ctx), g.config.Normalize(username))
}
