package fasthttprequest

import (
	"log/slog"
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// countsApart reports whether this process is one of the children that Prefork starts and
// c counts in this process only.
func (m *Major) countsApart(c core.Checker) bool {
	t, ok := c.(interface{ Traits() core.Traits })
	return ok && m.IsChild() && t.Traits().Private
}

var saidApart sync.Once

// sayApart writes a line to slog.Default(), once in this process. Requests call it, and
// not the constructor, because the program may set its log after it has mounted the limiter.
func (m *Major) sayApart(limiter string) {
	saidApart.Do(func() {
		slog.Warn(m.Adapter+": Prefork is on: each child process counts for itself and allows the whole quota. Give the limiter a shared store, such as stores/redis, or turn Prefork off",
			"limiter", limiter)
	})
}
