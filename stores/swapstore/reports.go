package swapstore

import (
	"log/slog"
	"sync"
)

// reports logs stored values that cannot be read, and that clocks differ.
type reports struct {
	log *slog.Logger // nil: slog.Default() at the time of the line

	mu   sync.Mutex
	next int64 // not before this time
	more int   // reports left out since the last line

	clocks sync.Once
}

// logger returns the log.
func (u *reports) logger() *slog.Logger {
	if u.log != nil {
		return u.log
	}
	return slog.Default()
}

// clocksDiffer logs, once, that a stored time is a window or more ahead of now.
func (u *reports) clocksDiffer(limiter, name string) {
	u.clocks.Do(func() {
		u.logger().Warn("floodgate: a stored time is a window or more ahead: while clocks differ so much, limits do not hold",
			"limiter", limiter, "name", name, "advice", "set the clocks of all instances")
	})
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
	action := "replace"
	if denied {
		action = "deny"
	}
	u.logger().Warn("floodgate: a stored value cannot be read", "limiter", limiter, "name", name, "action", action, "more", more)
}
