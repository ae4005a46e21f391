package redisstore

import (
	"log/slog"
	"sync"
	"time"
)

// reports keeps the lines of a log apart. Its zero value is ready for use.
type reports struct {
	mu   sync.Mutex
	next time.Time // no line before this time
	more int       // reports left out since the last line
}

// reportEvery is the shortest time between two lines.
const reportEvery = time.Minute

// due reports whether a line may be logged, and how many were left out before it.
func (r *reports) due() (more int, ok bool) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.next) {
		r.more++
		return 0, false
	}
	more = r.more
	r.next, r.more = now.Add(reportEvery), 0
	return more, true
}

func (s *Store) log() *slog.Logger {
	if s.options.log != nil {
		return s.options.log
	}
	return slog.Default()
}

// reportReply logs what is wrong with the stored values of a reply's items. That
// clocks differ is logged once.
func (s *Store) reportReply(r reply, items []namedItem) {
	if r.unreadable {
		s.report(items)
	}
	if r.ahead {
		s.clocks.Do(func() {
			advice := "set the clocks of all instances, or leave out redisstore.Clock"
			if s.options.clock == nil {
				advice = "set the clock of the Redis server, and of its replicas"
			}
			s.log().Warn("redis: a stored time is a window or more ahead: while clocks differ so much, limits do not hold", "name", items[0].name, "advice", advice)
		})
	}
}

// report logs that one of the values of these items cannot be read.
func (s *Store) report(items []namedItem) {
	more, due := s.reports.due()
	if !due {
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
	s.log().Warn("redis: one of these stored values cannot be read", "names", names, "action", action, "more", more)
}
