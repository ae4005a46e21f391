package fiberlimit

import (
	"log/slog"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/floodgate-go/floodgate/core"
)

// countsApart returns whether this process is one of the children that Prefork
// starts, and counts where its siblings do not see it.
func countsApart(c core.Checker) bool {
	t, ok := c.(interface{ Traits() core.Traits })
	return ok && fiber.IsChild() && t.Traits().Private
}

var saidApart sync.Once

// sayApart writes a line to the log, once in this process. It is called by the
// first request: the program may set its log after it has mounted the limiter.
func sayApart(limiter string) {
	saidApart.Do(func() {
		slog.Warn("fiberlimit: Prefork: each child process counts for itself, so that all of them together allow the quota once for each child: give the limiter a shared store, such as stores/redis, or turn Prefork off",
			"limiter", limiter)
	})
}
