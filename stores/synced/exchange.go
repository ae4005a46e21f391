package synced

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// exchange is the goroutine that exchanges, and its state. Only the goroutine
// touches the state, others only the channels.
type exchange struct {
	forced chan struct{}
	asked  chan chan error // by Sync
	end    chan struct{}   // closed by stop
	ended  chan struct{}   // closed by the goroutine
	cancel context.CancelFunc

	sequence uint64
	pending  []chunk // not answered yet, in the order of their sequences
	low      []item  // whose counters are to be pushed once more: see collectLow
	failing  bool
	sweeping int
	pushed   int           // differences that were answered
	spent    time.Duration // on them
}

// chunk is a batch with what belongs to its differences.
type chunk struct {
	Batch
	items []item
	tried bool // it has been pushed at least once
}

// item is what belongs to a difference.
type item struct {
	id    ident
	entry *entry
	start int64
	back  bool
	heal  int64 // hits of the difference that were pushed before, and lost
}

// ending reports whether Close has been called.
func (x *exchange) ending() bool {
	select {
	case <-x.end:
		return true
	default:
		return false
	}
}

func (s *Store) start(first time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	s.exchange = exchange{
		forced: make(chan struct{}, 1), asked: make(chan chan error),
		end: make(chan struct{}), ended: make(chan struct{}), cancel: cancel,
	}
	s.fetch()
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
	x := &s.exchange
	defer close(x.ended)
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		var asked chan error
		select {
		case <-timer.C:
			timer.Reset(s.config.Interval)
		case <-x.forced:
			if x.failing { // the next interval is soon enough
				continue
			}
		case asked = <-x.asked:
		case <-x.end:
			return
		}
		s.fetch()
		err := s.exchangeAll(ctx)
		if asked != nil {
			asked <- err
		}
	}
}

// Sync exchanges now: it pushes what this process has counted, fetches the
// totals of its keys, and reads all counters of the namespace again. It returns
// when that is done, or when ctx ends; the exchange then goes on. The error is
// the backend's, or ctx's. With an Interval of 0 or below there is nothing to
// exchange, and Sync returns nil.
func (s *Store) Sync(ctx context.Context) error {
	if s.closed.Load() {
		return s.errClosed()
	}
	if s.config.Interval <= 0 {
		return nil
	}
	done := make(chan error, 1)
	select {
	case s.exchange.asked <- done:
	case <-s.exchange.ended:
		return s.errClosed()
	case <-ctx.Done():
		return fmt.Errorf("synced: %w", ctx.Err())
	}
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		err = s.refetch(ctx)
	}
	if err != nil {
		return fmt.Errorf("synced: %w", err)
	}
	return nil
}

// exchangeAll pushes pending differences, then changed ones, and then those
// that the answers call for: hits that the backend has lost, and hits that were
// refunded twice. After a failure the remaining ones wait for the next
// exchange.
func (s *Store) exchangeAll(ctx context.Context) error {
	x := &s.exchange
	err := s.pushPending(ctx) // of an exchange that failed
	if err == nil {
		// The answer to a second try may be older than the effect of the first.
		// A counter that is really low is low in the answer to the next push
		// too.
		x.low = x.low[:0]
		s.collect()
		err = s.pushPending(ctx)
	}
	if err == nil {
		low := x.low
		x.low = nil // counters found low after this are for the next exchange
		s.collectLow(low)
		err = s.pushPending(ctx)
	}
	if x.ending() && errors.Is(err, core.ErrClosed) {
		return err
	}
	x.failing = err != nil
	s.report(&s.reports.pushing, err)
	if err != nil {
		s.stats.failed.Add(1)
		return err
	}
	s.table.sweep(&s.table.shards[x.sweeping%shardCount], s.now())
	s.fetcher.counts.sweep(s.now())
	x.sweeping++
	return nil
}

// pushPending pushes the chunks one after the other. It stops with ErrClosed
// between two of them if Close has been called: Close pushes the rest, sorted.
func (s *Store) pushPending(ctx context.Context) error {
	x := &s.exchange
	for len(x.pending) > 0 {
		if x.ending() {
			return s.errClosed()
		}
		if err := s.pushChunk(ctx, &x.pending[0]); err != nil {
			return err
		}
		x.pending = x.pending[1:]
	}
	return nil
}

// pushChunk pushes one chunk and writes the totals into its entries.
func (s *Store) pushChunk(ctx context.Context, c *chunk) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	began := time.Now()
	c.tried = true
	totals, err := s.backend.PushDiffs(ctx, c.Batch)
	if err == nil && len(totals) != len(c.Diffs) {
		err = fmt.Errorf("the backend returned %d totals for %d differences", len(totals), len(c.Diffs))
	}
	if err != nil {
		return err
	}
	x := &s.exchange
	x.pushed += len(c.Diffs)
	x.spent += time.Since(began)
	s.stats.exchanges.Add(1)
	now := s.now()
	for i := range c.items {
		it := &c.items[i]
		if c.Diffs[i].Diff != 0 {
			s.stats.pushed.Add(1)
		}
		s.answered(it, c.Diffs[i].Diff, totals[i], now)
	}
	return nil
}

// answered writes a total into its entry.
func (s *Store) answered(it *item, diff, total, now int64) {
	sh := &s.table.shards[it.id.shard()]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	f := sh.entries.find(it.id)
	if f == nil || f.entry != it.entry {
		return // evicted meanwhile
	}
	f.open()
	defer f.learn() // for the next decision on the key
	slot := it.entry.at(it.start)
	if slot == nil {
		return // too old to mean anything
	}
	t := &slot.added
	if it.back {
		if slot.back == nil && total == 0 {
			return
		}
		t, diff, total = slot.given(), -diff, -total
	}
	// A window that means nothing any more may have expired in the backend, and
	// an answer to what was just sent again says nothing new.
	sure := it.heal == 0 && now < it.start+2*it.entry.window
	again := *it
	low := t.answered(diff-it.heal, total, sure)
	if it.back && slot.tooMuch(diff-it.heal) {
		again.back, low = false, true
	}
	if low {
		s.exchange.low = append(s.exchange.low, again)
		sh.use(it.entry) // until nothing is missing
	}
}

// reports is what has been logged of failures.
type reports struct {
	mu                sync.Mutex
	pushing, fetching bool // fails now

	either atomic.Bool // pushing || fetching, so that a decision need not lock
}

// report logs that exchanges or fetches have begun to fail, or that all work
// again, once each. failing is the field of s.reports concerned.
func (s *Store) report(failing *bool, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	r := &s.reports
	r.mu.Lock()
	before := r.pushing || r.fetching
	*failing = err != nil
	after := r.pushing || r.fetching
	r.either.Store(after)
	r.mu.Unlock()
	switch {
	case after && !before:
		s.config.Log.Warn("the shared counters do not answer; this process counts for itself", "namespace", s.config.Namespace, "error", err)
	case before && !after:
		s.config.Log.Info("the shared counters answer again", "namespace", s.config.Namespace)
	}
}
