package synced

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// fetcher reads the counters of the namespace from the backend, so that the
// first decision on a key knows what other processes have counted. At most one
// fetch runs at a time.
type fetcher struct {
	mu      sync.Mutex
	windows map[time.Duration]bool // true: their counters have been fetched
	running chan struct{}          // closed when the fetch that runs has ended; nil: none runs
	began   time.Time              // that fetch, or the last one
	cancel  context.CancelFunc     // of the fetch that runs
	closed  bool
	err     error // of the last fetch
	failed  int   // fetches in a row
	retry   int64 // when to fetch again after a failure, in microseconds

	counts fetched
}

// longestFetch is how long a fetch may take, in multiples of Config.Timeout: it
// reads every counter of the namespace, and nobody need wait for it.
const longestFetch = 300

// slowestRetry is the longest pause between fetches that fail.
const slowestRetry = time.Minute

// need notes that the counters of windows of this length are to be fetched.
func (f *fetcher) need(window time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.windows[window]; !known {
		f.windows[window] = false
	}
}

// missing returns the windows to be fetched. The fetcher is locked.
func (f *fetcher) missing() (windows []time.Duration) {
	for w, done := range f.windows {
		if !done {
			windows = append(windows, w)
		}
	}
	return windows
}

var ended = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// fetch starts to fetch what is missing, unless a fetch runs. The channel is
// closed when the fetch has ended.
func (s *Store) fetch() <-chan struct{} {
	f := &s.fetcher
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running != nil {
		return f.running
	}
	if f.closed || len(f.missing()) == 0 || f.failed > 0 && s.now() < f.retry {
		return ended
	}
	done := make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), longestFetch*s.config.Timeout)
	f.running, f.cancel, f.began = done, cancel, time.Now()
	go func() {
		defer close(done)
		defer cancel()
		s.fetchMissing(ctx)
	}()
	return done
}

// fetchMissing fetches until nothing is missing or a fetch fails.
func (s *Store) fetchMissing(ctx context.Context) {
	f := &s.fetcher
	f.mu.Lock()
	defer f.mu.Unlock()
	for windows := f.missing(); len(windows) > 0 && !f.closed; windows = f.missing() {
		f.mu.Unlock()
		err := s.fetchWindows(ctx, windows)
		s.report(&s.reports.fetching, err)
		f.mu.Lock()
		if f.err = err; err != nil {
			pause := min(min(s.config.Interval, slowestRetry)<<min(f.failed, 20), slowestRetry)
			f.failed++
			f.retry = s.now() + pause.Microseconds()
			break
		}
		f.failed = 0
		for _, w := range windows {
			f.windows[w] = true
		}
	}
	f.running = nil
}

// fetchWindows reads the counters of some windows. Those that it has read when
// it fails are kept.
func (s *Store) fetchWindows(ctx context.Context, windows []time.Duration) error {
	for c, err := range s.backend.Counters(ctx, s.config.Namespace, windows, micros(s.now())) {
		if err != nil {
			s.stats.failed.Add(1)
			return err
		}
		if !s.fetcher.counts.add(counterID{c.Key, c.Window.Microseconds(), c.Start.UnixMicro()}, c.Count, s.config.MaxKeys) {
			s.config.Log.Warn("more counters are stored than MaxKeys; the rest are known after the first exchange of their keys", "namespace", s.config.Namespace, "MaxKeys", s.config.MaxKeys)
			break
		}
	}
	s.stats.exchanges.Add(1)
	return nil
}

// refetch reads all counters again and waits until that is done or ctx ends.
func (s *Store) refetch(ctx context.Context) error {
	f := &s.fetcher
	for again := false; ; again = true {
		select {
		case <-s.fetch(): // the first time, of one that began earlier
		case <-ctx.Done():
			return ctx.Err()
		}
		f.mu.Lock()
		if again {
			defer f.mu.Unlock()
			return f.err
		}
		f.retry = 0
		for w := range f.windows {
			f.windows[w] = false
		}
		f.mu.Unlock()
	}
}

// await waits for a fetch until it has run for Config.Timeout, or until ctx
// ends: several waits one after another take no longer than one. The store is
// not locked.
func (s *Store) await(ctx context.Context, fetch <-chan struct{}) {
	s.fetcher.mu.Lock()
	patience := s.config.Timeout - time.Since(s.fetcher.began)
	s.fetcher.mu.Unlock()
	timer := time.NewTimer(patience) // it ends at once if nothing is left
	defer timer.Stop()
	select {
	case <-fetch:
	case <-ctx.Done():
	case <-timer.C:
	}
}

// end stops the fetch that runs, and lets none begin.
func (f *fetcher) end() {
	f.mu.Lock()
	f.closed = true
	running := f.running
	if running != nil {
		f.cancel()
	}
	f.mu.Unlock()
	if running != nil {
		<-running
	}
}

// counterID names a counter of the backend.
type counterID struct {
	name          string
	window, start int64
}

// fetched has the counters that were fetched, until their keys are used or their
// windows mean nothing any more.
type fetched struct {
	mu   sync.RWMutex
	all  map[counterID]int64
	size atomic.Int64 // of all, so that a decision need not lock
}

// add reports whether there was room.
func (f *fetched) add(id counterID, count int64, most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.all[id]; !known && len(f.all) >= most {
		return false
	}
	f.all[id] = count
	f.size.Store(int64(len(f.all)))
	return true
}

// tell gives an entry the count that was fetched for it. The entry's shard is
// locked.
func (f *fetched) tell(e *entry) (known bool) {
	if f.size.Load() == 0 {
		return false
	}
	var found [4]counterID
	n := 0
	f.mu.RLock()
	for _, start := range [2]int64{e.start, e.start - e.window} {
		for _, back := range [2]bool{false, true} {
			id := counterID{e.name(back), e.window, start}
			count, ok := f.all[id]
			// Hits that are being pushed may be in the count already.
			if ok && e.at(start).heard(back, count) {
				found[n] = id
				n++
			}
		}
	}
	f.mu.RUnlock()
	if n == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range found[:n] {
		delete(f.all, id)
	}
	f.size.Store(int64(len(f.all)))
	return true
}

// sweep drops counters whose windows mean nothing any more, and looks at a
// bounded number of them.
func (f *fetched) sweep(now int64) {
	if f.size.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := 0
	for id := range f.all { // begins at random
		if now >= id.start+2*id.window {
			delete(f.all, id)
		}
		if seen++; seen == sweepAtOnce {
			break
		}
	}
	f.size.Store(int64(len(f.all)))
}
