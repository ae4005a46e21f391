package core

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// session is the working memory of one decision. Sessions are pooled: nothing of one
// may be kept after release.
type session struct {
	snap    *snapshot
	batch   Batch
	keys    []byte   // of the items, one behind the other: see closeKey
	results []Result // room for those of the items
	quotas  []int64  // room for those that rules return
	quoted  bool     // an item has quotas
	cost    int64
	ask     asking // of a Check

	texts    strings.Builder // the texts of keys for decisions: see keep
	charges  []atomic.Uint32 // for later decisions: see charged
	failures *failureLog
}

func (l *Limiter) session(s *snapshot) *session {
	c := l.sessions.Get().(*session)
	c.snap = s
	return c
}

// end gives the session back and reports the decision to the observer.
func (l *Limiter) end(ctx context.Context, c *session, d *Decision) {
	s := c.snap
	l.release(c)
	if s.observer.Decided != nil {
		s.observer.Decided(ctx, *d, int(d.rule), int(d.limit))
	}
}

// release gives the session back.
func (l *Limiter) release(c *session) {
	c.empty()
	c.batch.For, c.snap, c.ask.body.Request = 0, nil, nil
	if cap(c.keys) <= 64<<10 {
		l.sessions.Put(c)
	}
}

func (c *session) empty() {
	c.batch.Items, c.keys, c.results, c.quotas, c.quoted = c.batch.Items[:0], c.keys[:0], c.results[:0], c.quotas[:0], false
}

// addItem adds an item whose key has been appended to keys, with quotas, nil for the limits' own.
// If keys or results grow, earlier items keep the old arrays.
func (c *session) addItem(rule, from int, cost int64, quotas []int64) *Item {
	first, end := len(c.results), len(c.results)+len(c.snap.rules[rule].Limits)
	if end > cap(c.results) {
		c.results = slices.Grow(c.results, end-first)
	}
	c.results = c.results[:end]
	n := len(c.batch.Items)
	if n == cap(c.batch.Items) {
		c.batch.Items = slices.Grow(c.batch.Items, 1)
	}
	c.batch.Items = c.batch.Items[:n+1]
	it := &c.batch.Items[n] // it may be one of a decision before
	it.Rule, it.Key, it.Cost, it.Results = rule, c.keys[from:len(c.keys):len(c.keys)], cost, c.results[first:end:end]
	it.Quotas, it.At, it.Unknown = quotas, 0, false
	c.quoted = c.quoted || quotas != nil
	return it
}

// closeKey ends a key that begins at from: key and extra are joined so that no two
// different pairs are ever equal.
func closeKey(keys []byte, from int, extra string) []byte {
	if extra == "" {
		return append(keys, 0)
	}
	n := len(keys) - from
	keys = append(keys, extra...)
	keys = binary.BigEndian.AppendUint32(keys, uint32(n))
	return append(keys, 1)
}

// openKey returns the key and the extra that closeKey has joined.
func openKey(joined string) (key, extra string) {
	end := len(joined) - 1
	if joined[end] == 0 {
		return joined[:end], ""
	}
	n := binary.BigEndian.Uint32([]byte(joined[end-4 : end]))
	return joined[:n], joined[n : end-4]
}

// addHits adds an item for each counter named, once.
func (c *session) addHits(cost int64, hits []Hit) error {
	c.cost = cost
	if cost < 0 {
		return fmt.Errorf("%w: limiter %q: cost %d: must be 0 or more", ErrConfig, c.snap.name, cost)
	}
	for i := range hits {
		h := &hits[i]
		if slices.ContainsFunc(hits[:i], h.sameCounter) {
			continue
		}
		rule := c.snap.find(h.Rule)
		if rule < 0 {
			return fmt.Errorf("limiter %q, rule %q: %w", c.snap.name, h.Rule, ErrUnknownRule)
		}
		if h.Quotas != nil {
			if err := c.snap.checkQuotas(rule, h.Quotas); err != nil {
				return err
			}
		}
		from := len(c.keys)
		c.keys = closeKey(append(c.keys, h.Key...), from, h.Extra)
		c.addItem(rule, from, cost, h.Quotas)
	}
	return nil
}

func (h *Hit) sameCounter(o Hit) bool {
	return o.Rule == h.Rule && o.Key == h.Key && o.Extra == h.Extra
}

// do does an operation with the items, if there are any, and tells the observer.
func (c *session) do(ctx context.Context, op Op) (err error) {
	s, b := c.snap, &c.batch
	if b.Op = op; op != OpRefund { // whose input they are
		b.Degraded, b.Cached = false, false
	}
	if len(b.Items) == 0 && op != OpResetAll {
		b.Allowed = true
		return nil
	}
	if s.memory != nil { // directly: the interface costs a tenth of a decision
		return s.memory.do(b)
	}
	var start time.Time
	if s.observer.Stored != nil {
		start = time.Now()
	}
	if err = s.counters.Do(ctx, b); errors.Is(err, ErrUnsupported) {
		err = fmt.Errorf("limiter %q: %v: %w", s.name, op, err)
	}
	if s.observer.Stored != nil && !canceled(ctx, err) {
		s.observer.Stored(ctx, op.String(), time.Since(start), err)
	}
	return err
}

// decide fills d from the store's results. d is empty except for d.direct.
func (c *session) decide(d *Decision) {
	d.snap, d.rule, d.Degraded = c.snap, -1, c.batch.Degraded
	items := c.batch.Items
	if len(items) == 0 {
		d.Allowed, d.Reason, d.Cost = true, ReasonNoRule, c.cost
		return
	}
	if d.Allowed = c.batch.Allowed; !d.Allowed {
		d.Reason = ReasonOverLimit
	}
	i, limit, several := 0, 0, len(items) > 1 || len(items[0].Results) > 1 || c.quoted
	if several {
		i, limit = c.deciding()
		d.rest = newRest()
	}
	item := &items[i]
	r := &item.Results[limit]
	d.Remaining, d.ResetAfter, d.MoreAfter, d.RetryAfter = r.Remaining, r.ResetAfter, r.MoreAfter, r.RetryAfter
	d.Cost, d.at, d.rule, d.limit, d.over = item.Cost, item.At, int32(item.Rule), uint8(limit), !r.Allowed
	if d.Allowed && c.batch.Op == OpTake {
		c.charged(d)
	}
	if several {
		c.remember(d, i)
	} else {
		d.key = c.keep(item.Key)
	}
}

// deciding returns the index of the item, and of its limit, that a decision names: of the
// limits that deny, the one with the longest wait; if none denies, the one with the
// smallest share remaining. The first of equals.
func (c *session) deciding() (item, limit int) {
	for i := range c.batch.Items {
		for j := range c.batch.Items[i].Results {
			if (i > 0 || j > 0) && c.before(&c.batch.Items[i], j, &c.batch.Items[item], limit) {
				item, limit = i, j
			}
		}
	}
	return item, limit
}

// before returns whether limit i of a decides rather than limit j of b. A limit that the
// store has not looked at never decides.
func (c *session) before(a *Item, i int, b *Item, j int) bool {
	if a.Unknown || b.Unknown {
		return !a.Unknown
	}
	x, y := &a.Results[i], &b.Results[j]
	if x.Allowed != y.Allowed {
		return !x.Allowed
	}
	if !x.Allowed {
		return x.RetryAfter > y.RetryAfter
	}
	if p, q := a.quota(i) == Unlimited, b.quota(j) == Unlimited; p || q {
		return !p
	}
	// x.Remaining / its capacity < y.Remaining / its capacity, in whole numbers.
	return x.Remaining*c.snap.capacity(b, j) < y.Remaining*c.snap.capacity(a, i)
}

// charged notes in d that the items have been charged, and whether Settle has to do something.
func (c *session) charged(d *Decision) {
	if len(c.charges) == 0 { // one allocation for many decisions
		c.charges = make([]atomic.Uint32, 64)
	}
	d.charge, c.charges = &c.charges[0], c.charges[1:]
	if d.direct || !c.snap.settles {
		return
	}
	estimate, settles := false, false
	for i := range c.batch.Items {
		rule := &c.snap.rules[c.batch.Items[i].Rule]
		estimate = estimate || rule.Cost != nil
		settles = settles || rule.Counts != nil || rule.Clears != nil
	}
	if estimate || settles && c.cost > 0 { // without a Rule.Cost, each rule costs that
		d.more().outcome, d.more().estimate = true, estimate
	}
}

// newRest returns a rest with room for the items of most decisions, in one allocation.
func newRest() *rest {
	r := new(struct {
		rest

		items   [3]decided
		results [6]Result
	})
	r.rest.items, r.rest.results = r.items[:0], r.results[:0]
	return &r.rest
}

// remember notes all items and results in d. decides is the index of the deciding item.
func (c *session) remember(d *Decision, decides int) {
	m, from := d.rest, 0
	keys := c.keep(c.keys)
	for i := range c.batch.Items {
		item := &c.batch.Items[i]
		it := decided{key: keys[from : from+len(item.Key)], cost: item.Cost, at: item.At, rule: int32(item.Rule)}
		from += len(item.Key)
		if i == decides {
			m.deciding = len(m.results) + int(d.limit)
			d.key = it.key
		}
		if item.Unknown { // nothing was charged either
			continue
		}
		m.items = append(m.items, it)
		m.results = append(m.results, item.Results...)
		if c.quoted {
			m.quotas = c.snap.appendQuotas(m.quotas, item)
		}
	}
	for i, q := range m.quotas {
		if r := &m.results[i]; q == Unlimited && r.Allowed { // it denies if the key is blocked
			r.Remaining, r.MoreAfter = Unlimited, 0
			if i == m.deciding {
				d.Remaining, d.MoreAfter = Unlimited, 0
			}
		}
	}
}

// keep returns the text of a key for a Decision. The texts of short keys lie one behind
// the other in a block of memory, so that there is one allocation for many of them.
func (c *session) keep(key []byte) string {
	const block = 1024 // bytes
	if len(key) > block/16 {
		return string(key)
	}
	if c.texts.Cap()-c.texts.Len() < len(key) {
		c.texts.Reset() // the texts in the old block stay
		c.texts.Grow(block)
	}
	from := c.texts.Len()
	c.texts.Write(key)
	return c.texts.String()[from:]
}

// fail makes d a decision that has failed because of err, or that was canceled.
func (c *session) fail(ctx context.Context, d *Decision, err error) {
	*d = Decision{Reason: ReasonFailed, Cost: c.cost, Err: err, snap: c.snap, rule: -1}
	if canceled(ctx, err) {
		d.Reason = ReasonCanceled
	}
}

// canceled reports whether an error means only that the client has gone.
func canceled(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.Canceled) && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)))
}

// recall adds those items of a decision for which cost returns more than 0, with that
// cost, as they were when they were charged. i is the item's index in the decision.
func (c *session) recall(d *Decision, cost func(i int, it decided) int64) {
	from := 0 // the item's first limit
	for i := range d.items() {
		it := d.item(i)
		n := len(c.snap.rules[it.rule].Limits)
		if part := cost(i, it); part > 0 {
			var quotas []int64
			if d.rest != nil && d.rest.quotas != nil {
				quotas = d.rest.quotas[from : from+n]
			}
			start := len(c.keys)
			c.keys = append(c.keys, it.key...)
			item := c.addItem(int(it.rule), start, part, quotas)
			item.At = it.at
			for j := range n {
				item.Results[j] = d.resultAt(from + j)
			}
		}
		from += n
	}
	c.batch.Degraded, c.batch.Cached = d.Degraded, false
}
