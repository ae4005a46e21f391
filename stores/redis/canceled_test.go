package redisstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// A take whose client has hung up before the answer came may have been charged.
func TestTheErrorOfACanceledTake(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	client.AddHook(new(tracing)) // so that a decision alone does not wait on its caller's goroutine
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	take(t, b, "k")
	server.MustDo("CLIENT", "PAUSE", "20000", "WRITE") // scripts too
	defer server.MustDo("CLIENT", "UNPAUSE")
	gone := errors.New("gone")
	two := one("k", 1, 1)
	two.Items = append(two.Items, one("other", 1, 1).Items...)
	apart := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience), redisstore.ShardedByKey())
	for name, take := range map[string]func(context.Context) error{
		"one key":                  func(ctx context.Context) error { return storetest.Do(ctx, b, core.OpTake, one("k", 1, 1)) },
		"keys in several commands": func(ctx context.Context) error { return storetest.Do(ctx, apart, core.OpTake, two) },
	} {
		for _, cause := range []error{context.Canceled, gone} {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(cause)
			err := take(ctx)
			var e *redisstore.Error
			if !errors.As(err, &e) || e.Class != redisstore.ClassCanceled || !e.Unknown || !errors.Is(err, cause) {
				t.Errorf("%s, canceled by %q: error %v, want one that has the cause and says that the take may have been charged", name, cause, err)
			}
		}
	}
}
