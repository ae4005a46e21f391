package peers

import (
	"sync"

	"golang.org/x/time/rate"
)

// timeRate is what many write by hand: a map of limiters under a mutex. It
// forgets nothing.
var timeRate = Peer{
	Name: "x/time/rate in a map", Module: "golang.org/x/time",
	Local: func(l Limit) (Allow, func()) {
		var mu sync.Mutex
		limiters := map[string]*rate.Limiter{}
		return func(key string) bool {
			mu.Lock()
			limiter := limiters[key]
			if limiter == nil {
				limiter = rate.NewLimiter(rate.Limit(l.perSecond()), l.Quota)
				limiters[key] = limiter
			}
			mu.Unlock()
			return limiter.Allow()
		}, nothing
	},
}
