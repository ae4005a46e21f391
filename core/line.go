package core

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// lines are the requests of a limiter that wait, in one line for each key of a rule. The
// head of a line, its first request, is the only one of the line that takes. If Reconfigure
// changes the limits of a rule, later requests have lines of their own: those that wait for a
// low quota must not hold up the others.
type lines struct {
	tickets atomic.Uint64
	waiting atomic.Int64  // requests in all lines; changes under mu
	frees   atomic.Uint64 // grows when there is more room: what a take has found before may have changed

	mu sync.Mutex       // held for a few assignments: never while a store, a context or a hook is called
	of map[string]*line // by name: the first of the lines of a key
}

// line is the line of one key.
type line struct {
	name       string // see session.lineName
	generation uint64 // of the rule's limits: see compiledRule
	other      *line  // of the same key, with other limits
	head, tail *waiter
	length     int
	cost       int64     // of all requests in the line
	seen       []Result  // by the last take of a head
	seenAt     time.Time // the end of that take
	seenBy     *snapshot // the configuration of that head
}

// waiter is a request in a line.
type waiter struct {
	line       *line
	prev, next *waiter
	ticket     uint64 // requests that came earlier have smaller ones
	cost       int64
	turn       chan struct{} // has a value if the waiter has become the head, or should take sooner
}

// lineName appends the name of the line of a key to dst. Names of rules contain no slash, so
// that no two keys have the same name.
func lineName(dst []byte, rule string, key []byte) []byte {
	dst = append(dst, rule...)
	dst = append(dst, '/')
	return append(dst, key...)
}

// lineName appends the name of the line of an item's key to dst.
func (c *session) lineName(dst []byte, item int) []byte {
	return lineName(dst, c.snap.rules[c.batch.Items[item].Rule].Name, c.batch.Items[item].Key)
}

// generation is the generation of the limits of an item.
func (c *session) generation(item int) uint64 {
	return c.snap.rules[c.batch.Items[item].Rule].generation
}

// join adds a request to the line of this name, behind all that came earlier, and never
// before the head, which may be taking. It returns what the requests before it cost. w is nil if
// the lines of the key, or all lines together, are full.
func (q *lines) join(name []byte, generation, ticket uint64, cost int64, s *snapshot) (w *waiter, ahead int64) {
	w = &waiter{ticket: ticket, cost: min(cost, MaxQuota), turn: make(chan struct{}, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	l, full := q.find(name, generation, s)
	if full {
		return nil, l.costs()
	}
	if l == nil {
		if q.of == nil {
			q.of = map[string]*line{}
		}
		l = &line{name: string(name), generation: generation, other: q.of[string(name)]}
		q.of[l.name] = l
	}
	w.line, w.prev, ahead = l, l.tail, l.cost
	for w.prev != nil && w.prev != l.head && w.prev.ticket > ticket {
		ahead -= w.prev.cost
		w.prev = w.prev.prev
	}
	if w.prev == nil {
		l.head, l.tail = w, w
	} else {
		w.next, w.prev.next = w.prev.next, w
		if w.next == nil {
			l.tail = w
		} else {
			w.next.prev = w
		}
	}
	l.length++
	l.cost += w.cost
	q.waiting.Add(1)
	return w, ahead
}

// find returns the line of this name for this generation of limits, nil if nobody is in it yet, and whether
// nobody may join it.
func (q *lines) find(name []byte, generation uint64, s *snapshot) (found *line, full bool) {
	length := 0
	for l := q.of[string(name)]; l != nil; l = l.other {
		length += l.length
		if l.generation == generation {
			found = l
		}
	}
	return found, length >= s.maxWaiters || q.waiting.Load() >= int64(s.maxWaitersTotal)
}

func (l *line) costs() int64 {
	if l == nil {
		return 0
	}
	return l.cost
}

// leave removes w from its line. If w was the head, the next one is now.
func (q *lines) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := w.line
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
		if w.prev == nil {
			w.next.call()
		}
	}
	l.length--
	l.cost -= w.cost
	q.waiting.Add(-1)
	if l.head == nil {
		q.drop(l)
	}
}

// drop forgets an empty line.
func (q *lines) drop(l *line) {
	first := q.of[l.name]
	switch {
	case first != l:
		for first.other != l {
			first = first.other
		}
		first.other = l.other
	case l.other != nil:
		q.of[l.name] = l.other
	default:
		delete(q.of, l.name)
	}
}

// call tells the waiter that it is its turn.
func (w *waiter) call() {
	select {
	case w.turn <- struct{}{}:
	default: // it has been told, and has not looked yet
	}
}

// ahead returns what the requests before w cost.
func (q *lines) ahead(w *waiter) (cost int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for p := w.prev; p != nil; p = p.prev {
		cost += p.cost
	}
	return cost
}

// earlier reports whether the line of this name has a request that came before the ticket,
// and whether the line is full.
func (q *lines) earlier(name []byte, generation, ticket uint64, s *snapshot) (earlier, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l, full := q.find(name, generation, s)
	if l == nil {
		return false, full
	}
	// The head may be later than the others: see join.
	return l.head.ticket < ticket || l.head.next != nil && l.head.next.ticket < ticket, full
}

// learn notes the results of a take of the line's head, nil if they are of no use to others.
// frees is what it was before that take.
func (q *lines) learn(l *line, results []Result, s *snapshot, frees uint64) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.frees.Load() != frees {
		results = nil
	}
	l.seen, l.seenAt, l.seenBy = append(l.seen[:0], results...), now, s
}

// known appends to dst what a head of the same configuration has learnt last, and returns how
// long ago that was true.
func (q *lines) known(dst []Result, l *line, s *snapshot) (_ []Result, age time.Duration) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.seenBy != s {
		return dst, 0
	}
	return append(dst, l.seen...), now.Sub(l.seenAt)
}

// freed is called after this process has ended leases of these items, or has given them hits
// back. The items have Rule and Key, and are the caller's. The head of the line of each key asks
// the store at once.
func (l *Limiter) freed(s *snapshot, items []Item) {
	if !l.lines.free() {
		return
	}
	var room [128]byte
	for i := range items {
		l.lines.freed(lineName(room[:0], s.rules[items[i].Rule].Name, items[i].Key))
	}
}

// freedAll is freed for all keys.
func (l *Limiter) freedAll() {
	if !l.lines.free() {
		return
	}
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	for _, first := range l.lines.of {
		first.callAll()
	}
}

// free notes that there is more room, and returns whether a request may wait for it.
func (q *lines) free() bool {
	q.frees.Add(1)
	return q.waiting.Load() > 0
}

// freed makes the heads of the lines of this name ask the store at once.
func (q *lines) freed(name []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.of[string(name)].callAll()
}

// callAll makes the heads of all lines of a key, of which l is the first, ask the store.
func (l *line) callAll() {
	for ; l != nil; l = l.other {
		l.seen = l.seen[:0]
		l.head.call()
	}
}

// opens returns how long nobody in the line can be admitted, by what the last take of a head
// has found. 0 if that is not known, or not enough for a request that costs more than a hit.
func (t *turn) opens() (wait time.Duration) {
	if it := &t.batch.Items[t.item]; it.Cost != 1 || it.Quotas != nil {
		return 0
	}
	var room [4]Result
	seen, age := t.lines.known(room[:0], t.me.line, t.snap)
	for j, r := range seen {
		switch {
		case r.Remaining > 0:
		case t.leases(&t.batch.Items[t.item], j):
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
	it := &t.batch.Items[t.item]
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
		r := &t.batch.Items[item].Results[0] // there are hits, which are for those before it
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
	it := &t.batch.Items[item]
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
	it := &t.batch.Items[t.item]
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
