package peers

import (
	"context"
	"net/http"

	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
)

var goLimiter = Peer{
	Name: "go-limiter", Module: "github.com/sethvargo/go-limiter",
	Local: func(l Limit) (Allow, func()) {
		store := must(memorystore.New(&memorystore.Config{Tokens: uint64(l.Quota), Interval: l.Window, SweepInterval: l.Window, SweepMinTTL: l.Window}))
		ctx := context.Background()
		return func(key string) bool {
			_, _, _, ok, err := store.Take(ctx, key)
			return err == nil && ok
		}, func() { _ = store.Close(ctx) }
	},
	HTTP: func(l Limit) func(http.Handler) http.Handler {
		store := must(memorystore.New(&memorystore.Config{Tokens: uint64(l.Quota), Interval: l.Window}))
		return must(httplimit.NewMiddleware(store, httplimit.IPKeyFunc())).Handle
	},
}
