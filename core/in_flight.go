package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DefaultLease is the Window of the limit that [InFlight] returns.
const DefaultLease = 30 * time.Second

// minLease is the shortest Window of a limit of Leases: a process must be able to
// renew its leases in time.
const minLease = time.Second

// InFlight returns a limit of n requests in flight at a time for each key, with
// DefaultLease as its lease: see [Leases]. A slot is held until the handler returns: an
// http.TimeoutHandler inside the limit returns while its handler still runs, so that more
// than n may run. Mount the limit inside http.TimeoutHandler.
func InFlight(n int64) Limit { return Limit{Quota: n, Window: DefaultLease, Algorithm: Leases} }

// Leaser is a Bound that counts [Leases]: a limit of that algorithm adds the lease
// Item.Lease, with Cost slots, in a Take that is allowed. The Bounds of [Memory],
// and of the packages swapstore, memcachedstore and redisstore, are.
//
// A Charge and a Refund leave leases alone, and Reset ends all of a key. A store
// that takes the keys of a Batch one by one, and gives back what it has charged
// when a later one denies, ends the leases of that Take too.
//
// The items of both methods have Rule, Key, Lease and Cost. Unlike in other
// batches, several may have the same Rule and Key, each with another Lease. Rules
// without a limit of Leases are left alone. Both methods may be called concurrently,
// and again after an error: the second call does no more than the first one.
type Leaser interface {
	// Release ends the leases. What has ended, or never was, is no error, and no
	// other lease changes.
	Release(ctx context.Context, b *Batch) error
	// Renew makes the leases end a whole Window from now, those that have ended in
	// between too: they count again, above the quota if need be.
	Renew(ctx context.Context, b *Batch) error
}

// inFlight describes a limit of Leases, such as "10 in flight".
func (l Limit) inFlight() string {
	text := fmt.Sprintf("%d in flight", l.Quota)
	if l.Window != DefaultLease {
		text += " (lease " + shortDuration(l.Window) + ")"
	}
	return text
}

func hasLeases(limits []Limit) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool { return l.Algorithm == Leases })
}

// addLeases notes the leases of a rule.
func (s *snapshot) addLeases(limits []Limit) {
	for i := range limits {
		if l := &limits[i]; l.Algorithm == Leases && (!s.leases || l.Window < s.lease) {
			s.leases, s.lease = true, l.Window
		}
	}
}

// private reports whether a store's counters end with the process.
func private(s Store) bool {
	t, _ := TraitsOf(s) // compile has checked it
	return t.Private
}

// endless makes leases last as long as they can. Those of this process end when they
// are released: a process that has stood still for a time must not grant a slot that is
// held.
func endless(rules []StoreRule) {
	for i := range rules {
		if !hasLeases(rules[i].Limits) {
			continue
		}
		rules[i].Limits = slices.Clone(rules[i].Limits)
		for j := range rules[i].Limits {
			if l := &rules[i].Limits[j]; l.Algorithm == Leases {
				l.Window = MaxWindow
			}
		}
	}
}

// bindLeases returns an error if a rule has a limit of Leases, which b does not count.
func (s *snapshot) bindLeases(store Store, b Bound) error {
	if !s.leases {
		return nil
	}
	if s.leaser, _ = b.(Leaser); s.leaser != nil {
		s.shared = !private(store)
		return nil
	}
	var errs []error
	for i := range s.rules {
		for j := range s.rules[i].Limits {
			if s.rules[i].Limits[j].Algorithm == Leases {
				errs = append(errs, &fieldError{fmt.Sprintf("Rules[%d] (%q).Limits[%d].Algorithm", i, s.rules[i].Name, j), fmt.Sprintf("%v: the store cannot count what is in flight (%T is no core.Leaser)", Leases, b)})
			}
		}
	}
	return errors.Join(errs...)
}

// parseInFlight reads a limit such as 10 in flight lease=1m name=api. found is false if
// the text is of another form.
func parseInFlight(words []string) (l Limit, found bool, err error) {
	if len(words) < 3 || !strings.EqualFold(words[1], "in") || !strings.EqualFold(words[2], "flight") {
		return Limit{}, false, nil
	}
	l = InFlight(0)
	if l.Quota, err = parseCount("quota", words[0], MaxLogQuota); err != nil {
		return Limit{}, true, err
	}
	seen := map[string]bool{}
	for _, word := range words[3:] {
		kind, value, _ := strings.Cut(word, "=")
		switch {
		case seen[kind]:
			err = fmt.Errorf("%w: %q: %s is given twice", ErrConfig, word, kind)
		case kind == "lease":
			if l.Window, err = parseWindow(kind, value); err == nil && (l.Window < minLease || l.Window > MaxWindow) {
				err = fmt.Errorf("%w: lease: %q: must be from %v to 366 days", ErrConfig, value, minLease)
			}
		case kind == "name" && value != "":
			l.Name = value
		default:
			err = fmt.Errorf("%w: %q: want lease= or name=", ErrConfig, word)
		}
		if err != nil {
			return Limit{}, true, err
		}
		seen[kind] = true
	}
	return l, true, nil
}
