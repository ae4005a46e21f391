package swapstore

import (
	"log/slog"
	"sync"
)

// reports logs stored values that cannot be read.
type reports struct {
	log *slog.Logger // nil: slog.Default() at the time of the line

	mu   sync.Mutex
	next int64 // not before this time
	more int   // reports left out since the last line
}

// reportEvery is the shortest time between two lines, in microseconds.
const reportEvery = 60_000_000

func (u *reports) report(limiter, name string, denied bool, now int64) {
	u.mu.Lock()
	more := u.more
	wait := now < u.next && u.next-now <= reportEvery
	if wait {
		u.more++
	} else {
		u.next, u.more = now+reportEvery, 0
	}
	u.mu.Unlock()
	if wait {
		return
	}
	log := u.log
	if log == nil {
		log = slog.Default()
	}
	action := "replace"
	if denied {
		action = "deny"
	}
	log.Warn("floodgate: a stored value cannot be read", "limiter", limiter, "name", name, "action", action, "more", more)
}
