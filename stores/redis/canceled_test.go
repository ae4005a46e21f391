package redisstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// A take whose client has hung up before the answer came may have been charged.
func TestTheErrorOfACanceledTake(t *testing.T) {
	server := redistest.Start(t)
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience))
	take(t, b, "k")
	server.MustDo("CLIENT", "PAUSE", "20000", "WRITE") // scripts too
	defer server.MustDo("CLIENT", "UNPAUSE")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := b.Take(ctx, one("k", 1, 1))
	var e *redisstore.Error
	if !errors.As(err, &e) || e.Class != redisstore.ClassCanceled || !e.Unknown || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want one that says that the take may have been charged", err)
	}
}
