package peers

import (
	"net/http"

	"github.com/didip/tollbooth/v7"
	"github.com/didip/tollbooth/v7/limiter"
)

var tollboothed = Peer{
	Name: "tollbooth", Module: "github.com/didip/tollbooth/v7",
	Local: func(l Limit) (Allow, func()) {
		lmt := tollboothLimiter(l)
		return func(key string) bool { return !lmt.LimitReached(key) }, nothing
	},
	HTTP: func(l Limit) func(http.Handler) http.Handler {
		lmt := tollboothLimiter(l).SetIPLookups([]string{"RemoteAddr"})
		return func(next http.Handler) http.Handler { return tollbooth.LimitHandler(lmt, next) }
	},
}

func tollboothLimiter(l Limit) *limiter.Limiter {
	return tollbooth.NewLimiter(l.perSecond(), &limiter.ExpirableOptions{DefaultExpirationTTL: l.Window}).SetBurst(l.Quota)
}
