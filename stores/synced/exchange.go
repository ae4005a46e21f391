package synced

import (
	"context"
	"fmt"
	"time"
)

// batchSize is the highest number of differences in one batch.
const batchSize = 1000

// exchange is the state of the exchanges, which only the holder of turn touches.
type exchange struct {
	turn     chan struct{} // full while somebody has the turn; Close keeps it
	sequence uint64
	pending  []chunk // not answered yet, in the order of their sequences
}

// chunk is the differences of a batch, with their entries.
type chunk struct {
	sequence uint64
	diffs    []Diff
	entries  []*entry
}

// run exchanges every interval. The next exchange is due an interval after the
// last one began, however long that took, and never before it has ended.
func (s *Store) run(first time.Duration) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			timer.Reset(s.config.Interval)
			_ = s.exchangeAll(s.ctx) // has logged the error
			if s.now() >= s.fetched.until.Load() {
				s.fetched.counts.Clear()
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// exchangeAll pushes what has changed, and what a failed exchange has left. The totals of a batch
// that is pushed again may be older than the batch: collect asks for them once more.
func (s *Store) exchangeAll(ctx context.Context) error {
	return s.inTurn(ctx, func(ctx context.Context) error {
		s.collect()
		if x := &s.exchange; len(x.pending) == 0 && s.failing.Load() { // does the backend answer again?
			x.sequence++
			x.pending = []chunk{{sequence: x.sequence}}
		}
		return s.pushPending(ctx)
	})
}

// inTurn pushes the batches that a failed exchange has left, and then calls f, while no exchange
// runs. A failure leaves the rest for the next exchange. Close ends the context of f.
func (s *Store) inTurn(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	var err error
	select {
	case s.exchange.turn <- struct{}{}:
		defer func() { <-s.exchange.turn }()
		if err = s.pushPending(ctx); err == nil {
			err = f(ctx)
		}
		s.report(ctx, err)
	case <-ctx.Done():
		err = fmt.Errorf("synced: %w", ctx.Err())
	}
	if s.closed.Load() {
		return errClosed
	}
	return err
}

// report logs that the backend has begun to fail, or that it works again, once each.
func (s *Store) report(ctx context.Context, err error) {
	if ctx.Err() != nil { // the backend may be well
		return
	}
	switch failed := s.failing.Swap(err != nil); {
	case err != nil && !failed:
		s.config.Log.Warn("the shared counters do not answer; this process counts for itself", "namespace", s.config.Namespace, "error", err)
	case err == nil && failed:
		s.config.Log.Info("the shared counters answer again", "namespace", s.config.Namespace)
	}
}

// collect moves the differences of all marked entries to chunks that are pending.
func (s *Store) collect() {
	x, now := &s.exchange, s.now()
	room := 0 // in the last chunk
	add := func(e *entry, start int64) {
		slot := e.at(start)
		if room == 0 {
			x.sequence++
			x.pending = append(x.pending, chunk{sequence: x.sequence})
			room = batchSize
		}
		room--
		c := &x.pending[len(x.pending)-1]
		c.diffs, c.entries = append(c.diffs, e.diff(start)), append(c.entries, e)
		slot.known, slot.diff = slot.known+slot.diff, 0
	}
	for i := range s.table.shards {
		sh := &s.table.shards[i]
		sh.mu.Lock()
		for e := range sh.marked {
			if e.rounds--; e.rounds == 0 {
				delete(sh.marked, e)
			}
			if now >= e.start+3*e.window {
				continue // means nothing any more
			}
			add(e, e.start)
			// Hits of the window before that others push late still count.
			if e.previous.diff != 0 || e.stale || now-e.start <= 4*s.config.Interval.Microseconds() {
				add(e, e.start-e.window)
			}
			e.stale = false
		}
		sh.mu.Unlock()
	}
}

// pushPending pushes the chunks one after the other, and writes the totals into their entries.
func (s *Store) pushPending(ctx context.Context) error {
	x := &s.exchange
	for ; len(x.pending) > 0; x.pending = x.pending[1:] {
		c := &x.pending[0]
		totals, err := s.pushDiffs(ctx, c.sequence, c.diffs)
		if err != nil {
			return err
		}
		for i, e := range c.entries {
			sh := s.table.shard(e.id)
			sh.mu.Lock()
			if slot := e.at(c.diffs[i].Start.UnixMicro()); slot != nil { // else it means nothing any more
				slot.known = totals[i]
			}
			sh.mu.Unlock()
		}
	}
	return nil
}

// pushDiffs pushes differences and returns the totals, within Config.Timeout.
func (s *Store) pushDiffs(ctx context.Context, sequence uint64, diffs []Diff) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	totals, err := s.backend.PushDiffs(ctx, Batch{Namespace: s.config.Namespace, Node: s.node, Sequence: sequence, At: time.UnixMicro(s.now()), Diffs: diffs})
	if err == nil && len(totals) != len(diffs) {
		err = fmt.Errorf("the backend returned %d totals for %d differences", len(totals), len(diffs))
	}
	if err != nil {
		s.stats.failed.Add(1)
		return nil, fmt.Errorf("synced: %w", err)
	}
	s.stats.exchanges.Add(1)
	return totals, nil
}

// Sync exchanges now, if Interval is above 0: it pushes what this process has counted, and receives
// the totals of the keys that were used lately. The error is the backend's, or ctx's.
func (s *Store) Sync(ctx context.Context) error { return s.exchangeAll(ctx) }

// Close stops exchanging, pushes the remaining differences until ctx ends or three pushes
// have failed, and releases the namespace. The error tells how many hits could not be
// pushed; Stats.Lost counts them. Operations after Close return core.ErrClosed;
// closing again does nothing. Close does not close the backend.
func (s *Store) Close(ctx context.Context) error {
	if s.closed.Swap(true) {
		return nil
	}
	s.cancel()
	defer namespaces.Delete([2]any{s.backend, s.config.Namespace})
	s.exchange.turn <- struct{}{}
	s.collect()
	err := s.pushPending(ctx)
	for try := 1; err != nil && try < 3; try++ { // one lost answer must not lose the remaining batches
		select {
		case <-time.After(50 * time.Millisecond):
			err = s.pushPending(ctx)
		case <-ctx.Done():
		}
	}
	lost := int64(0)
	for _, c := range s.exchange.pending {
		for _, d := range c.diffs {
			lost += max(0, d.Diff)
		}
	}
	if lost == 0 {
		return nil
	}
	s.stats.lost.Add(uint64(lost)) //nolint:gosec // not negative
	return fmt.Errorf("synced: %d hits could not be pushed: %w", lost, err)
}
