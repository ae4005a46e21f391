package redisstore

import (
	"log/slog"
	"sync"
	"time"
)

// reports logs stored values that cannot be read.
type reports struct {
	mu   sync.Mutex
	next time.Time // no line before this time
	more int       // reports left out since the last line
}

// reportEvery is the shortest time between two lines.
const reportEvery = time.Minute

// report logs that one of the values of these items cannot be read.
func (s *Store) report(items []namedItem) {
	r, now := &s.reports, time.Now()
	r.mu.Lock()
	more := r.more
	wait := now.Before(r.next)
	if wait {
		r.more++
	} else {
		r.next, r.more = now.Add(reportEvery), 0
	}
	r.mu.Unlock()
	if wait {
		return
	}
	names := make([]string, len(items))
	action := "replace"
	for i := range items {
		names[i] = items[i].name
		if items[i].rule.denies {
			action = "deny"
		}
	}
	log := s.options.log
	if log == nil {
		log = slog.Default()
	}
	log.Warn("redis: one of these stored values cannot be read", "names", names, "action", action, "more", more)
}
