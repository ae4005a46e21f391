package core

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// session is the working memory of one decision. Sessions are pooled: nothing
// of one may be kept after release.
type session struct {
	snap    *snapshot
	cost    int64
	batch   Batch
	items   []Item
	spans   []span // where each item's key is in keys, and which hit it came from
	keys    []byte
	texts   strings.Builder // see keep
	results []Result
	quotas  []int64
	decides int // index of the item of the deciding limit
	probe   bodyProbe
	stripe  *stripe
	chosen  []int // by Config.Select: the rules that are for the request
	waits   []int // rules whose key or cost waits for the body

	lease uint64 // of the take, 0 if no item gets one

	failures *failureLog
	keeper   *leaseKeeper
}

type span struct {
	from, to, hit int
	quotas        int // where the item's quotas begin in session.quotas, plus 1; 0: it has none
}

func (l *Limiter) session(s *snapshot) *session {
	c := l.sessions.Get().(*session)
	c.snap = s
	return c
}

// release counts the decision, nil for none, and gives the session back.
func (l *Limiter) release(c *session, d *Decision) {
	if d != nil {
		c.stripe.count(d)
	}
	c.items, c.spans, c.keys, c.results, c.quotas = c.items[:0], c.spans[:0], c.keys[:0], c.results[:0], c.quotas[:0]
	c.chosen, c.waits = c.chosen[:0], c.waits[:0]
	c.batch.Degraded, c.lease, c.snap, c.probe.Request = false, 0, nil, nil
	if cap(c.keys) <= 64<<10 {
		l.sessions.Put(c)
	}
}

// addItem adds an item whose key has been appended to keys.
func (c *session) addItem(rule, from int, cost int64) {
	n := len(c.items)
	c.items = slices.Grow(c.items, 1)[:n+1]
	c.items[n].Rule, c.items[n].Cost, c.items[n].Unknown, c.items[n].Lease = rule, cost, false, 0
	c.spans = append(c.spans, span{from: from, to: len(c.keys)})
}

// closeKey ends a key that begins at from: key and extra are joined so that no
// two different pairs are ever equal.
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

// fewHits is how many hits are compared with each other, which takes less time than a map.
const fewHits = 32

// among reports whether the counter of h is that of one of the hits before it. seen has
// the counters of those hits, and gets that of h; it is nil if the hits are few.
func (h *Hit) among(before []Hit, seen map[[3]string]bool) bool {
	if seen == nil {
		return slices.ContainsFunc(before, func(o Hit) bool { return o.Rule == h.Rule && o.Key == h.Key && o.Extra == h.Extra })
	}
	counter := [3]string{h.Rule, h.Key, h.Extra}
	found := seen[counter]
	seen[counter] = true
	return found
}

func (c *session) addHits(cost int64, hits []Hit) error {
	if cost < 0 {
		return fmt.Errorf("limiter %q: cost %d: %w", c.snap.name, cost, ErrNegativeCost)
	}
	var seen map[[3]string]bool
	if len(hits) > fewHits {
		seen = make(map[[3]string]bool, len(hits))
	}
	for i, h := range hits {
		if h.among(hits[:i], seen) {
			continue
		}
		rule, err := c.snap.rule(h.Rule)
		if err != nil {
			return err
		}
		if err := c.snap.checkQuotas(rule, h.Quotas); err != nil {
			return err
		}
		c.addHit(rule, h.Key, h.Extra, cost)
		c.spans[len(c.spans)-1].hit = i
		c.addQuotas(h.Quotas)
	}
	return nil
}

func (c *session) addHit(rule int, key, extra string, cost int64) {
	from := len(c.keys)
	c.keys = closeKey(append(c.keys, key...), from, extra)
	c.addItem(rule, from, cost)
}

// bindItems points the items to their keys and results, now that these no
// longer move.
func (c *session) bindItems() {
	n := 0
	for i := range c.items {
		n += len(c.snap.rules[c.items[i].Rule].Limits)
	}
	if n > cap(c.results) {
		c.results = make([]Result, n)
	}
	c.results = c.results[:n]
	n = 0
	for i := range c.items {
		item, s := &c.items[i], c.spans[i]
		item.Key = c.keys[s.from:s.to:s.to]
		end := n + len(c.snap.rules[item.Rule].Limits)
		item.Results = c.results[n:end:end]
		if item.Quotas = nil; s.quotas > 0 {
			item.Quotas = c.quotas[s.quotas-1:][: end-n : end-n]
		}
		n = end
	}
	c.batch.Items = c.items
}

func (c *session) take(ctx context.Context, peek bool) error {
	c.bindItems()
	c.batch.Peek = peek
	if !c.snap.leases || peek {
		return c.ask(ctx, peek)
	}
	c.giveLease()
	err := c.ask(ctx, peek)
	if c.lease != 0 {
		c.taken(err)
	}
	return err
}

// ask asks the store for a decision.
func (c *session) ask(ctx context.Context, peek bool) error {
	if !c.snap.timed {
		return c.snap.bound.Take(ctx, &c.batch)
	}
	operation := "take"
	if peek {
		operation = "peek"
	}
	return c.snap.run(ctx, operation, &c.batch, c.snap.bound.Take)
}

// remember notes in d what Adjust, Settle, StoredKey and Limits need of the
// session. hits are those of a Take, nil for a request.
func (c *session) remember(ctx context.Context, d *Decision, peek bool, hits []Hit) {
	d.detail.snap = c.snap
	if len(c.items) == 0 {
		return
	}
	allowed := c.batch.Allowed && !peek
	d.marks.charged = allowed && slices.ContainsFunc(c.items, func(i Item) bool { return i.Cost > 0 })
	estimate := c.snap.estimates && allowed && hits == nil && c.estimates()
	outcome := estimate || c.snap.settles && d.marks.charged && hits == nil && c.wantOutcome()
	leased := allowed && c.lease != 0
	item := &c.items[0]
	if len(c.results) == 1 && !outcome && !leased {
		d.rule, d.detail.at = int32(item.Rule), item.At
		d.marks.hit = hits != nil
		if d.marks.raw = d.marks.hit && hits[0].Extra == ""; d.marks.raw {
			d.detail.key = hits[0].Key
		} else {
			d.detail.key = c.keep(item.Key)
		}
		return
	}
	d.record = c.newRecord(hits)
	d.record.outcome, d.record.estimate = outcome, estimate
	if leased {
		if d.record.lease = c.lease; c.snap.shared {
			c.keeper.add(c.snap, d.record)
		}
		c.snap.gained(ctx, d.record)
	}
}

// keep returns the text of a key for a Decision. The texts of short keys lie one
// behind the other in a block of memory, so that there is one allocation for
// many of them.
func (c *session) keep(key []byte) string {
	if len(key) > longestKept {
		return string(key)
	}
	if c.texts.Cap()-c.texts.Len() < len(key) {
		c.texts.Reset() // the texts in the old block stay
		c.texts.Grow(keptBlock)
	}
	from := c.texts.Len()
	c.texts.Write(key)
	return c.texts.String()[from:]
}

const (
	keptBlock   = 1024 // bytes
	longestKept = keptBlock / 16
)

func (c *session) wantOutcome() bool {
	return slices.ContainsFunc(c.items, func(i Item) bool {
		r := &c.snap.rules[i.Rule]
		return r.Counts != nil || r.Clears != nil
	})
}
