package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// leaseKeeper renews the leases of a limiter in a shared store, and releases those that
// could not be released at once. It works in the goroutine of a timer, which is armed
// only while there is something to do: it need not be stopped.
//
// Of a lease that is released while it is being renewed, it is not known which of the two
// the store gets first: it is released again after the renewal.
type leaseKeeper struct {
	limiter *Limiter

	mu      sync.Mutex
	held    map[*rest]*snapshot
	ended   []endedLease
	timer   *time.Timer
	due     time.Time // when the timer fires; zero: it is not armed
	renewAt time.Time
	working bool // a round is under way, and arms the timer at its end
}

// endedLease is a lease to release in the background.
type endedLease struct {
	snap  *snapshot
	items []Item
	until time.Time // from then on it has lapsed by itself
}

const (
	// renewals is how often a lease is renewed while it lasts.
	renewals = 3
	// renewedTogether is the most leases in one operation of a store.
	renewedTogether = 1000
	// maxEnded is the most leases that wait for their release. Others lapse.
	maxEnded = 10_000
	// releaseSoon is how long a lease waits for its release in the background, so
	// that many are released together.
	releaseSoon = 50 * time.Millisecond
)

func (s *snapshot) renewEvery() time.Duration { return s.lease / renewals }

// add keeps the leases of a record until it is removed.
func (k *leaseKeeper) add(s *snapshot, r *rest) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held = map[*rest]*snapshot{}
	}
	if at := now.Add(s.renewEvery()); len(k.held) == 0 || at.Before(k.renewAt) {
		k.renewAt = at
	}
	k.held[r] = s
	k.arm(k.renewAt, now)
}

// remove stops renewing the leases of a record. again is true if they may be renewed at
// this moment.
func (k *leaseKeeper) remove(r *rest) (again bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, r)
	return k.working
}

// lost releases the leases of a session's items in the background.
func (k *leaseKeeper) lost(c *session) {
	e := endedLease{snap: c.snap, until: time.Now().Add(c.snap.lease)}
	for i := range c.batch.Items {
		if it := c.batch.Items[i]; it.Lease != 0 {
			e.items = append(e.items, Item{Rule: it.Rule, Key: slices.Clone(it.Key), Cost: it.Cost, Lease: it.Lease, Results: make([]Result, len(it.Results))})
		}
	}
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ended) < maxEnded {
		k.ended = append(k.ended, e)
	}
	k.arm(now.Add(releaseSoon), now)
}

// arm makes the timer fire at a time, or sooner. k is locked.
func (k *leaseKeeper) arm(at, now time.Time) {
	if k.working || !k.due.IsZero() && !at.Before(k.due) {
		return
	}
	k.due = at
	if k.timer == nil {
		k.timer = time.AfterFunc(at.Sub(now), k.round)
	} else {
		k.timer.Reset(at.Sub(now))
	}
}

// round renews what is held, if it is time, and releases what has ended.
func (k *leaseKeeper) round() {
	now := time.Now()
	held, busy := k.begin(now)
	if busy {
		return
	}
	next := now.Add(MaxWindow)
	for s, records := range held {
		if every := k.renew(s, records); now.Add(every).Before(next) {
			next = now.Add(every)
		}
	}
	k.mu.Lock()
	k.working = false
	ended := k.ended
	k.ended = nil
	if next.Before(k.renewAt) {
		k.renewAt = next
	}
	k.mu.Unlock()
	again := k.releaseAll(ended)

	now = time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = append(k.ended, again...)
	if len(k.held) > 0 {
		k.arm(k.renewAt, now)
	}
	switch {
	case len(again) > 0:
		k.arm(now.Add(time.Second), now)
	case len(k.ended) > 0:
		k.arm(now.Add(releaseSoon), now)
	}
}

// begin returns the leases to renew, nil if it is not time for it.
func (k *leaseKeeper) begin(now time.Time) (held map[*snapshot][]*rest, busy bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.working {
		return nil, true
	}
	k.due, k.working = time.Time{}, true
	if now.Before(k.renewAt) || len(k.held) == 0 {
		return nil, false
	}
	k.renewAt = now.Add(MaxWindow)
	held = map[*snapshot][]*rest{}
	for r, s := range k.held {
		held[s] = append(held[s], r)
	}
	return held, false
}

// renew renews leases of one configuration, and returns when they are to be renewed
// again.
func (k *leaseKeeper) renew(s *snapshot, records []*rest) (every time.Duration) {
	every = s.renewEvery()
	for some := range slices.Chunk(records, renewedTogether) {
		c := k.limiter.session(s)
		for _, r := range some {
			c.addLeases(r)
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.renewEvery())
		if err := s.do(ctx, OpRenew, &c.batch); err != nil {
			c.stripe.failed.Add(1)
			c.reportStore(ctx, "renew", err)
			every = s.renewEvery() / 4
		}
		cancel()
		k.limiter.release(c)
	}
	return every
}

// releaseAll releases leases, and returns those that must be released again.
func (k *leaseKeeper) releaseAll(ended []endedLease) (again []endedLease) {
	bySnap := map[*snapshot][]endedLease{}
	for _, e := range ended {
		bySnap[e.snap] = append(bySnap[e.snap], e)
	}
	for s, all := range bySnap {
		for some := range slices.Chunk(all, renewedTogether) {
			var b Batch
			for _, e := range some {
				b.Items = append(b.Items, e.items...)
			}
			ctx, cancel := context.WithTimeout(context.Background(), s.renewEvery())
			err := s.do(ctx, OpRelease, &b)
			cancel()
			now := time.Now()
			for _, e := range some {
				if err != nil && now.Before(e.until) {
					again = append(again, e)
				}
			}
			if err == nil {
				k.limiter.lines.freed(s, b.Items)
			}
		}
	}
	return again
}
