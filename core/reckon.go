package core

import (
	"time"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// opens returns how long nobody in the line can be admitted, by what the last take of a head
// has found. 0 if that is not known, or not enough for a request that costs more than a hit.
func (t *turn) opens() (wait time.Duration) {
	if it := &t.items[t.item]; it.Cost != 1 || it.Quotas != nil {
		return 0
	}
	var room [4]Result
	seen, age := t.lines.known(room[:0], t.me.line, t.snap)
	for j, r := range seen {
		switch {
		case r.Remaining > 0:
		case t.leases(&t.items[t.item], j):
			wait = max(wait, t.leaseWait(t.item))
		default:
			wait = max(wait, r.MoreAfter-age)
		}
	}
	return wait
}

// leases reports whether a limit is one of Leases, which nobody knows the end of.
func (t *turn) leases(it *Item, limit int) bool {
	return t.snap.leases && t.snap.rules[it.Rule].Limits[limit].Algorithm == Leases
}

// leaseWait is how long the request sleeps before it asks again for a lease. At the end of its
// time it asks once more.
func (t *turn) leaseWait(item int) time.Duration {
	until := t.until(item)
	if until.IsZero() {
		return leasePoll
	}
	left := until.Sub(t.now)
	if left <= 0 {
		return leastWait // which is too long
	}
	return min(left, leasePoll)
}

// hopes reports whether a request that has joined a line may be admitted in time, after those
// before it, which cost ahead. If not, the request is denied. It asks the store only if what
// the last take of a head has found does not suffice.
func (t *turn) hopes(ahead int64) (bool, error) {
	it := &t.items[t.item]
	for j := range it.Results {
		if it.Cost > t.snap.capacity(it, j) {
			return t.refuse(ErrWaitTooLong, t.item, ahead)
		}
	}
	if t.until(t.item).IsZero() || t.inTime(t.item, t.atMost(ahead)) {
		return true, nil
	}
	if err := t.reckon(t.item, ahead); err != nil {
		return false, err
	}
	_, _, hopeless := t.denied()
	if hopeless {
		t.batch.Allowed, t.why = false, ErrWaitTooLong
	}
	return !hopeless, nil
}

// refuse denies the request, which would be admitted after others that cost ahead.
func (t *turn) refuse(why error, item int, ahead int64) (bool, error) {
	if err := t.reckon(item, ahead); err != nil {
		return false, err
	}
	if at, _, hopeless := t.denied(); at < 0 && !hopeless {
		r := &t.items[item].Results[0] // there are hits, which are for those before it
		r.Allowed, r.RetryAfter = false, leastWait
	}
	t.batch.Allowed, t.why = false, why
	return false, nil
}

// reckon asks the store how things stand, and writes into the results how long it takes until
// the request is admitted after others in the line of an item's key, which cost ahead.
//
// The store is asked for as many hits as the line needs, the request's own included, if the
// limits can admit so many at once. If not, whole rounds of the quota are left out and
// added again, with the time in which the quota comes back.
func (t *turn) reckon(item int, ahead int64) error {
	it := &t.items[item]
	own, last := it.Cost, ahead+min(it.Cost, MaxQuota)
	least := Unlimited
	for j := range it.Results {
		least = min(least, t.snap.capacity(it, j))
	}
	asked := last
	if own > least {
		asked = own // which no wait admits
	} else if last > least {
		asked = (last-1)%least + 1
	}
	it.Cost = asked
	err := t.attempt(true)
	it.Cost = own
	if err != nil || it.Unknown {
		return err
	}
	for j := range it.Results {
		r := &it.Results[j]
		r.RetryAfter = t.after(it, j, asked, last)
		r.Allowed = r.RetryAfter == 0
	}
	return nil
}

// after returns how long it takes until a limit has admitted the last of so many hits, if its
// result is that for the number of hits that was asked for.
func (t *turn) after(it *Item, limit int, asked, last int64) (wait time.Duration) {
	r, capacity := &it.Results[limit], t.snap.capacity(it, limit)
	if r.RetryAfter == Never || capacity == 0 {
		return Never
	}
	rounds, rest := (last-1)/capacity, (last-1)%capacity+1
	switch {
	case t.leases(it, limit):
		return r.RetryAfter
	case rest == asked:
		wait = r.RetryAfter
	case last > r.Remaining: // as if the hits came back evenly
		wait = r.MoreAfter + (r.ResetAfter-r.MoreAfter)/time.Duration(capacity)*time.Duration(rest)
	}
	return plus(wait, rounds, t.refill(it, limit))
}

// atMost returns how long it takes at most until the line has admitted a request after others
// that cost ahead, by what the last take of a head has found. Never if that is not known.
func (t *turn) atMost(ahead int64) (wait time.Duration) {
	it := &t.items[t.item]
	var room [4]Result
	seen, age := t.lines.known(room[:0], t.me.line, t.snap)
	if len(seen) != len(it.Results) || it.Quotas != nil {
		return Never
	}
	for j, r := range seen {
		if t.leases(it, j) {
			continue
		}
		rounds := (ahead + it.Cost - 1) / t.snap.capacity(it, j)
		wait = max(wait, plus(max(r.ResetAfter-age, 0), rounds, t.refill(it, j)))
	}
	return wait
}

// plus returns wait and so many rounds, MaxRefill at most.
func plus(wait time.Duration, rounds int64, round time.Duration) time.Duration {
	if wait > MaxRefill || rounds > int64((MaxRefill-wait)/round) {
		return MaxRefill
	}
	return wait + time.Duration(rounds)*round
}

// refill returns how long it takes until a limit has admitted its capacity once more.
func (t *turn) refill(it *Item, limit int) time.Duration {
	l := t.snap.rules[it.Rule].Limits[limit]
	if it.Quotas != nil {
		l = l.with(it.Quotas[limit])
	}
	switch {
	case l.Algorithm == TokenBucket && l.Burst > 0 && l.Quota > 0:
		us, _ := meter.MulDiv(l.Window.Microseconds(), l.Burst, l.Quota)
		return max(time.Duration(us)*time.Microsecond, time.Microsecond)
	case l.Algorithm == BucketedWindow:
		return l.Window + l.Precision
	default:
		return l.Window
	}
}
