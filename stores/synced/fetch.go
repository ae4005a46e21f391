package synced

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// fetched has the counters that were fetched from the backend, so that the first decision
// on a key knows what other processes have counted.
type fetched struct {
	turn chan struct{} // held by the fetch that runs

	mu      sync.Mutex
	windows map[time.Duration]int // how often it is tried to fetch their counters
	counts  map[counterID]int64   // until their keys are used
	size    atomic.Int64          // of counts, so that a decision need not lock
	until   int64                 // when counts mean nothing any more
}

// counterID names a counter of the backend.
type counterID struct {
	stored
	start int64
}

// need notes that the counters of windows of this length are to be fetched.
func (f *fetched) need(window time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.windows[window]; !known {
		f.windows[window] = 2 // once more, if the backend does not answer
	}
}

// fetch reads the counters of the namespace that have not been read, or all. It takes at most
// Config.Timeout, and keeps what it has read until then. While the backend does not answer,
// it leaves that to the exchange after which it answers again.
func (s *Store) fetch(all bool) error {
	if s.config.Interval <= 0 || s.closed.Load() || s.failing.Load() {
		return nil
	}
	f := &s.fetched
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	now := s.now()
	var windows []time.Duration
	f.mu.Lock()
	for w, tries := range f.windows {
		if tries > 0 || all {
			windows = append(windows, w)
			f.windows[w], f.until = tries-1, max(f.until, now+2*w.Microseconds())
		}
	}
	f.mu.Unlock()
	if len(windows) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.config.Timeout)
	defer cancel()
	for c, err := range s.backend.Counters(ctx, s.config.Namespace, windows, time.UnixMicro(now)) {
		if err != nil {
			s.stats.failed.Add(1)
			s.report(err)
			return err
		}
		if !f.add(counterID{stored{c.Key, c.Window.Microseconds()}, c.Start.UnixMicro()}, c.Count, s.config.MaxKeys) {
			s.config.Log.Warn("more counters are stored than MaxKeys; the rest are known after the first exchange of their keys", "namespace", s.config.Namespace, "MaxKeys", s.config.MaxKeys)
			break
		}
	}
	s.stats.exchanges.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range windows {
		f.windows[w] = 0
	}
	return nil
}

// add keeps a counter, and reports whether there was room.
func (f *fetched) add(id counterID, count int64, most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[id] = count
	f.size.Store(int64(len(f.counts)))
	return len(f.counts) < most
}

// tell gives an entry the counts that were fetched for it. The entry's shard is
// locked.
func (f *fetched) tell(e *entry) {
	if f.size.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, start := range [2]int64{e.start, e.start - e.stored.window} {
		id := counterID{*e.stored, start}
		slot := e.at(start)
		slot.known = max(slot.known, f.counts[id])
		delete(f.counts, id)
	}
	f.size.Store(int64(len(f.counts)))
}

// forget drops all counters if they mean nothing any more.
func (f *fetched) forget(now int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now >= f.until {
		clear(f.counts)
		f.size.Store(0)
	}
}
