package synced

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Close stops exchanging, pushes the remaining differences until ctx ends, and
// releases the namespace. It pushes the largest differences first. If there is
// more than one batch of them, Close first logs how many there are, and how
// many it expects to push before ctx's deadline at the speed so far.
//
// The deadline decides how many are saved: measured on two busy cores, Close
// wrote 12,500 counters a second to Redis and 6,100 to PostgreSQL, so that a
// million took 80 s and 164 s.
//
// The error tells how many hits, of how many counters, could not be pushed;
// Stats.Lost counts these hits. Operations after Close return core.ErrClosed;
// closing again does nothing. Close does not close the backend.
func (s *Store) Close(ctx context.Context) error {
	if !s.closed.CompareAndSwap(false, true) {
		return nil
	}
	var err error
	if s.config.Interval > 0 {
		err = s.stop(ctx)
	}
	s.release()
	return err
}

// stop ends the goroutines and pushes the remaining differences.
func (s *Store) stop(ctx context.Context) error {
	x := &s.exchange
	defer x.cancel()
	s.fetcher.end()
	close(x.end)
	select {
	case <-x.ended:
	case <-ctx.Done():
		x.cancel() // the operation under way
		<-x.ended
	}
	err := s.flush(ctx)
	if err == nil && len(x.low) > 0 { // hits that were refunded twice
		err = s.flush(ctx)
	}
	counters, hits := s.left()
	s.stats.lost.Add(uint64(hits)) //nolint:gosec // not negative
	if counters == 0 {
		return nil
	}
	return fmt.Errorf("synced: %d hits could not be pushed, of %d counters: %w", hits, counters, err)
}

// flush pushes all differences that are not 0.
func (s *Store) flush(ctx context.Context) error {
	x := &s.exchange
	all := s.gather()
	if len(all) > s.config.BatchSize {
		s.announce(ctx, all)
	}
	now := s.now()
	for part := range slices.Chunk(all, s.config.BatchSize) {
		x.sequence++
		c := chunk{Batch: Batch{Namespace: s.config.Namespace, Node: s.node, Sequence: x.sequence, At: micros(now)}}
		for _, w := range part {
			c.Diffs, c.items = append(c.Diffs, w.diff), append(c.items, w.item)
		}
		x.pending = append(x.pending, c)
	}
	for len(x.pending) > 0 {
		if err := s.insist(ctx, &x.pending[0]); err != nil {
			s.stats.failed.Add(1)
			return err
		}
		x.pending = x.pending[1:]
	}
	return nil
}

// closeTries is how often Close pushes a batch, and closePause is how long it
// waits in between: one lost answer must not lose the remaining batches.
const (
	closeTries = 3
	closePause = 50 * time.Millisecond
)

func (s *Store) insist(ctx context.Context, c *chunk) error {
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := s.pushChunk(ctx, c)
		if err == nil || try == closeTries {
			return err
		}
		pause := time.NewTimer(closePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// waiting is a difference that is to be pushed.
type waiting struct {
	diff Diff
	item item
}

// gather freezes all differences that are not 0, the largest first. The first
// chunk that is pending stays: the backend may have it already. Those behind it
// have never been pushed, and are gathered.
func (s *Store) gather() (all []waiting) {
	x := &s.exchange
	add := func(d Diff, it item) { all = append(all, waiting{d, it}) }
	for len(x.pending) > 0 && !x.pending[len(x.pending)-1].tried {
		c := &x.pending[len(x.pending)-1]
		for i := range c.items {
			s.thaw(&c.items[i], c.Diffs[i], add)
		}
		x.pending = x.pending[:len(x.pending)-1]
	}
	now := s.now()
	for i := range s.table.shards {
		sh := &s.table.shards[i]
		sh.mu.Lock()
		for e := range sh.entries.all() {
			for _, start := range [2]int64{e.start, e.start - e.window} {
				if now >= start+3*e.window {
					continue // means nothing any more
				}
				slot := e.at(start)
				length := time.Duration(e.window) * time.Microsecond
				if n := slot.added.freeze(); n != 0 {
					add(Diff{e.name(false), length, micros(start), n}, item{id: e.id, entry: e, start: start})
				}
				if slot.back == nil {
					continue
				}
				if n := slot.back.freeze(); n != 0 {
					add(Diff{e.name(true), length, micros(start), -n}, item{id: e.id, entry: e, start: start, back: true})
				}
			}
		}
		sh.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b waiting) int {
		return cmp.Compare(max(b.diff.Diff, -b.diff.Diff), max(a.diff.Diff, -a.diff.Diff))
	})
	return all
}

// thaw puts a difference that was never pushed back into its entry, or calls
// orphan if the entry has been evicted. Lost hits are left for other processes
// to heal.
func (s *Store) thaw(it *item, d Diff, orphan func(Diff, item)) {
	n := d.Diff
	if it.back {
		n = -n
	}
	if n -= it.heal; n == 0 {
		return
	}
	sh := &s.table.shards[it.id.shard()]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if slot := it.entry.at(it.start); slot != nil && sh.entries.get(it.id) == it.entry {
		if it.back {
			slot.given().thaw(n)
		} else {
			slot.added.thaw(n)
		}
		return
	}
	orphan(d, *it)
}

// announce logs how many differences are to be written, and how many of them
// can be.
func (s *Store) announce(ctx context.Context, all []waiting) {
	hits := int64(0)
	for _, w := range all {
		hits += max(0, w.diff.Diff)
	}
	log := s.config.Log.Info
	attrs := []any{"namespace", s.config.Namespace, "counters", len(all), "hits", hits}
	deadline, bounded := ctx.Deadline()
	x := &s.exchange
	switch {
	case !bounded:
		attrs = append(attrs, "can_write", len(all))
	case x.pushed == 0 || x.spent == 0:
		attrs = append(attrs, "can_write", "unknown", "time", time.Until(deadline))
	default:
		can := len(all)
		if speed := float64(x.pushed) / x.spent.Seconds(); speed*time.Until(deadline).Seconds() < float64(can) {
			can = max(0, int(speed*time.Until(deadline).Seconds()))
			log = s.config.Log.Warn
		}
		attrs = append(attrs, "can_write", can, "time", time.Until(deadline))
	}
	log("closing: the last exchange writes what has changed, the largest differences first", attrs...)
}

// left returns how many counters and hits have not been pushed.
func (s *Store) left() (counters int, hits int64) {
	for _, c := range s.exchange.pending {
		for i, d := range c.Diffs {
			n := d.Diff
			if c.items[i].back {
				n = -n
			}
			if n -= c.items[i].heal; n != 0 {
				counters++
			}
			if !c.items[i].back {
				hits += max(0, n)
			}
		}
	}
	return counters, hits
}
