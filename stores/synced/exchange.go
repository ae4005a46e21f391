package synced

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// exchange is the goroutine that exchanges, and what it works on. Nothing of it
// but the channels is touched by others.
type exchange struct {
	forced chan struct{}
	end    chan struct{} // closed by stop
	ended  chan struct{} // closed by the goroutine
	cancel context.CancelFunc

	sequence uint64
	pending  []chunk // frozen: not answered yet, in the order of their sequences
	failing  bool
	sweeping int
}

// chunk is a batch with the entries that it is of.
type chunk struct {
	Batch
	ids []ident
}

func (s *Store) start(first time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	s.exchange = exchange{forced: make(chan struct{}, 1), end: make(chan struct{}), ended: make(chan struct{}), cancel: cancel}
	go s.run(ctx, first)
}

// force asks for an exchange without waiting for the interval.
func (s *Store) force() {
	if s.exchange.forced == nil {
		return
	}
	select {
	case s.exchange.forced <- struct{}{}:
	default: // one is asked for already
	}
}

// run exchanges every interval. The next exchange is due an interval after the
// last one began, however long that took, and never before it has ended.
func (s *Store) run(ctx context.Context, first time.Duration) {
	defer close(s.exchange.ended)
	timer := time.NewTimer(first)
	defer timer.Stop()
	s.fetch(ctx)
	for {
		select {
		case <-timer.C:
			timer.Reset(s.config.Interval)
		case <-s.exchange.forced:
		case <-s.exchange.end:
			return
		}
		_ = s.exchangeAll(ctx)
	}
}

// stop ends the goroutine and pushes what is left.
func (s *Store) stop(ctx context.Context) error {
	close(s.exchange.end)
	select {
	case <-s.exchange.ended:
	case <-ctx.Done():
		s.exchange.cancel() // what is under way
		<-s.exchange.ended
	}
	defer s.exchange.cancel()
	err := ctx.Err()
	if err == nil {
		err = s.exchangeAll(ctx)
	}
	if err == nil {
		return nil
	}
	lost := int64(0)
	for _, c := range s.exchange.pending {
		for _, d := range c.Diffs {
			lost += max(0, d.Diff)
		}
	}
	for i := range s.table.shards {
		sh := &s.table.shards[i]
		sh.mu.Lock()
		for _, e := range sh.entries {
			lost += max(0, e.unsent())
		}
		sh.mu.Unlock()
	}
	s.stats.lost.Add(uint64(lost))
	if lost == 0 {
		return nil
	}
	return fmt.Errorf("synced: %d hits could not be pushed: %w", lost, err)
}

// fetch asks for what others have counted before this process started.
func (s *Store) fetch(ctx context.Context) {
	s.mu.Lock()
	var windows []time.Duration
	for w := range s.windows {
		windows = append(windows, w)
	}
	s.mu.Unlock()
	if len(windows) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	n := 0
	for c, err := range s.backend.Counters(ctx, s.config.Namespace, windows, micros(s.now())) {
		if err != nil {
			s.stats.failed.Add(1)
			s.report(err)
			return
		}
		s.mu.Lock()
		s.fetched[counterID{c.Key, c.Window.Microseconds(), c.Start.UnixMicro()}] = c.Count
		s.mu.Unlock()
		if n++; n >= s.config.MaxKeys {
			break
		}
	}
	s.stats.exchanges.Add(1)
}

// known gives a new entry what was fetched of it.
func (s *Store) known(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fetched) == 0 {
		return
	}
	for _, start := range []int64{e.start, e.start - e.window} {
		id := counterID{e.name, e.window, start}
		e.at(start).total = s.fetched[id]
		delete(s.fetched, id)
	}
}

// exchangeAll pushes what is pending, and then what has changed. After a
// failure the rest waits for the next time.
func (s *Store) exchangeAll(ctx context.Context) error {
	for late := len(s.exchange.pending) > 0; ; late = false {
		if !late {
			s.collect()
		}
		if err := s.pushPending(ctx); err != nil {
			s.stats.failed.Add(1)
			s.report(err)
			return err
		}
		if !late {
			break
		}
	}
	s.report(nil)
	s.table.sweep(&s.table.shards[s.exchange.sweeping%shardCount], s.now())
	s.exchange.sweeping++
	return nil
}

func (s *Store) pushPending(ctx context.Context) error {
	x := &s.exchange
	for len(x.pending) > 0 {
		if err := s.pushChunk(ctx, &x.pending[0]); err != nil {
			return err
		}
		x.pending = x.pending[1:]
	}
	return nil
}

// report logs that exchanges have begun to fail, or work again: once.
func (s *Store) report(err error) {
	x := &s.exchange
	if failing := err != nil; failing != x.failing && !errors.Is(err, context.Canceled) {
		x.failing = failing
		if failing {
			s.config.Log.Warn("the shared counters do not answer; this process counts for itself", "namespace", s.config.Namespace, "error", err)
		} else {
			s.config.Log.Info("the shared counters answer again", "namespace", s.config.Namespace)
		}
	}
}

// collect freezes the differences of all entries that are marked, in chunks.
func (s *Store) collect() {
	x := &s.exchange
	now := s.now()
	add := func(id ident, e *entry, start, diff int64) {
		last := len(x.pending) - 1
		if last < 0 || len(x.pending[last].ids) >= s.config.BatchSize {
			x.sequence++
			x.pending = append(x.pending, chunk{Batch: Batch{Namespace: s.config.Namespace, Node: s.node, Sequence: x.sequence, At: micros(now)}})
			last++
		}
		c := &x.pending[last]
		c.Diffs = append(c.Diffs, Diff{e.name, time.Duration(e.window) * time.Microsecond, micros(start), diff})
		c.ids = append(c.ids, id)
	}
	for i := range s.table.shards {
		sh := &s.table.shards[i]
		sh.mu.Lock()
		again := sh.dirty[:0]
		for _, id := range sh.dirty {
			e := sh.entries[id]
			if e == nil {
				continue
			}
			if e.rounds--; e.rounds > 0 {
				again = append(again, id)
			} else {
				e.dirty = false
			}
			if now >= e.start+3*e.window {
				continue // means nothing any more
			}
			for _, start := range []int64{e.start, e.start - e.window} {
				slot := e.at(start)
				// Of the window before, what others push late is still news.
				if start != e.start && slot.diff == 0 && !e.fresh && now-e.start > 4*s.config.Interval.Microseconds() {
					continue
				}
				add(id, e, start, slot.diff)
				slot.sent += slot.diff
				slot.diff = 0
			}
			e.fresh = false
		}
		sh.dirty = again
		sh.mu.Unlock()
	}
}

// pushChunk pushes one chunk and writes the totals into its entries.
func (s *Store) pushChunk(ctx context.Context, c *chunk) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	totals, err := s.backend.PushDiffs(ctx, c.Batch)
	if err == nil && len(totals) != len(c.Diffs) {
		err = fmt.Errorf("the backend gave %d totals for %d differences", len(totals), len(c.Diffs))
	}
	if err != nil {
		return err
	}
	s.stats.exchanges.Add(1)
	for i, id := range c.ids {
		d := &c.Diffs[i]
		if d.Diff != 0 {
			s.stats.pushed.Add(1)
		}
		sh := &s.table.shards[id.shard()]
		sh.mu.Lock()
		if e := sh.entries[id]; e != nil {
			if slot := e.at(d.Start.UnixMicro()); slot != nil {
				slot.total = totals[i]
				slot.sent -= d.Diff
			}
		}
		sh.mu.Unlock()
	}
	return nil
}
