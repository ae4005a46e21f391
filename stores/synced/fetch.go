package synced

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// fetched has the counters that were fetched from the backend, so that the first decision
// on a key knows what other processes have counted.
type fetched struct {
	windows sync.Map     // those whose counters have been asked for
	counts  sync.Map     // counterID → int64, until its key is used
	until   atomic.Int64 // when all of them mean nothing any more
}

// counterID names a counter of the backend.
type counterID struct {
	key           string
	window, start int64
}

// fetch reads the counters of the rules' windows that have not been asked for. It takes at most
// Config.Timeout, and keeps what it has read by then. While the backend fails, it does nothing.
func (s *Store) fetch(rules []rule) {
	if s.config.Interval <= 0 || s.failing.Load() {
		return
	}
	f, now := &s.fetched, s.now()
	var windows []time.Duration
	for _, r := range rules {
		for _, l := range r.Limits {
			if _, asked := f.windows.LoadOrStore(l.Window, true); !asked {
				windows = append(windows, l.Window)
				f.until.Store(max(f.until.Load(), now+2*l.Window.Microseconds()))
			}
		}
	}
	if len(windows) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.config.Timeout)
	defer cancel()
	read := 0
	var err error
	for c, failed := range s.backend.Counters(ctx, s.config.Namespace, windows, time.UnixMicro(now)) {
		if err = failed; err == nil && read == s.config.MaxKeys {
			err = errors.New("more counters are stored than MaxKeys")
		}
		if err != nil {
			break
		}
		f.counts.Store(counterID{c.Key, c.Window.Microseconds(), c.Start.UnixMicro()}, c.Count)
		read++
	}
	if err != nil && read == 0 {
		s.stats.failed.Add(1)
		s.report(s.ctx, err)
		return
	}
	if err != nil {
		s.config.Log.Warn("not all shared counters could be fetched; the rest are known after the first exchange of their keys", "namespace", s.config.Namespace, "fetched", read, "error", err)
	}
	s.stats.exchanges.Add(1)
}

// fill gives an entry the counts that were fetched for it.
func (f *fetched) fill(e *entry) {
	for _, start := range [2]int64{e.start, e.start - e.window} {
		if count, ok := f.counts.LoadAndDelete(counterID{e.key, e.window, start}); ok {
			slot := e.at(start)
			slot.known = max(slot.known, count.(int64))
		}
	}
}
