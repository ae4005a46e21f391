package login

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// The generation of an account tells device cookies and known addresses from
// before the last Forget from those after it. A cookie and the key of a known
// address carry the generation in which they were made.
//
// The store holds one counter for each account that was ever forgotten. Each
// Forget takes a random number of hits, and the generation is the sum of the
// hits of the last trustLimit.Window. Three facts make this safe:
//
//   - Trust never lasts longer than that window. So each Forget that matters to
//     a cookie is in the sum as long as the cookie lives.
//   - Until a Forget leaves the window, each Forget makes the sum larger.
//   - After one has left it, a later Forget makes the same sum again with a
//     probability of about one in a million, because the numbers are random.
//
// If the sum is 0, no Forget is younger than the window: each cookie that has
// not expired was made after the last one. If the sum is the whole quota, the
// account has been forgotten thousands of times, the sum cannot grow, and nobody
// is trusted.
//
// Trust can end too early, once a Forget is as old as the window: for addresses
// that became known after it, and for cookies that were made after it and after
// another one.
const (
	ruleForgotten = "forgotten"
	// mostHits is the largest number of hits that a Forget takes.
	mostHits = 1 << 20
)

// trustLimit is the counter of Forgets. Its window is the longest that trust
// can last, with a margin for clocks that differ.
type trustLimit struct {
	core.Limit
	longest time.Duration // of trust
}

const day = 24 * time.Hour

var (
	// longTrust is for stores that hold every window.
	longTrust = trustLimit{core.Limit{Quota: core.MaxQuota, Window: 360 * day, Precision: 12 * day, Algorithm: core.BucketedWindow}, maxTrust}
	// shortTrust is for stores that hold no more than 30 days, as memcached.
	shortTrust = trustLimit{core.Limit{Quota: core.MaxQuota, Window: 28 * day, Precision: day, Algorithm: core.BucketedWindow}, 27 * day}
)

const maxTrust = 350 * day

// trusts reports whether the guard trusts any clients.
func (c *Config) trusts() bool { return len(c.Secrets) > 0 || !c.ForgetAddresses }

// openMemory returns the guard's memory in the store, for the longest trust that
// the store can end, and shortens the configured trust to that.
func openMemory(c *Config, store core.Store) (*memory, error) {
	trust, err := newTrust(c, store, longTrust)
	if errors.Is(err, core.ErrConfig) {
		var again error
		if trust, again = newTrust(c, store, shortTrust); again == nil {
			err = c.shorten(shortTrust.longest)
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

// newTrust returns the limiter that counts Forgets. It has a name of its own
// because a value that cannot be read must count as full, so that nobody is
// trusted; of a known address it must not count as a hit.
func newTrust(c *Config, store core.Store, t trustLimit) (*core.Limiter, error) {
	return core.New(core.Config{
		Name:           c.Name + "-trust",
		Store:          store,
		Log:            c.Log,
		DenyUnreadable: true,
		Rules:          []core.Rule{{Name: ruleForgotten, Key: core.TakeOnly, Limits: []core.Limit{t.Limit}}},
	})
}

// shorten makes trust no longer than the store can end it. What the user has
// set to more is an error.
func (c *Config) shorten(longest time.Duration) error {
	var errs []error
	shorten := func(field string, d *time.Duration, standard time.Duration) {
		if *d > longest && *d != standard {
			errs = append(errs, fmt.Errorf("%w: %s: %v: the Store keeps no counter for that long, and Forget needs one: must be %v or less", core.ErrConfig, field, *d, longest))
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

// forget begins another generation of the account. If the counter has no room
// for another hit, nobody is trusted anyway.
func (m *memory) forget(ctx context.Context, account string) error {
	for most := int64(mostHits); ; {
		d, err := m.trust.Take(ctx, 1+rand.Int64N(most), core.Hit{Rule: ruleForgotten, Key: account})
		switch {
		case err != nil:
			return fmt.Errorf("login: Forget: %w", err)
		case d.Degraded:
			return errors.New("login: Forget: the shared store does not answer: no other process has heard of it")
		case d.Allowed || d.Remaining == 0:
			return nil
		}
		most = min(most, d.Remaining)
	}
}

// Forget ends the trust in all clients of an account: every device cookie and
// every known address, on every instance that shares the store, from the moment
// it returns. They count as strangers until they log in again. Call it after a
// new password has been stored, and whenever somebody may have stolen a
// browser's cookies. An attempt that the handler is judging meanwhile does not make
// its client trusted, even if it succeeds.
//
// An account that does not exist is no error. The failures that have been
// counted stay: see [Guard.Unblock]. If ctx is canceled, Forget goes on; the
// store's own deadline ends it. An error means that the store could not be told
// and that the old trust may still hold: call Forget again.
//
// The store remembers a Forget for longer than any trust lasts. Counters in
// this process are lost when it ends: device cookies from before a Forget are
// then valid again, for as long as Config.CookieFor. If that matters, use a
// shared Store.
func (g *Guard) Forget(ctx context.Context, username string) error {
	return g.memory.forget(context.WithoutCancel(ctx), g.config.Normalize(username))
}
