package redisstore

import (
	"context"
	"errors"
	"testing"
)

// A reply that has come is used, although the call's context has ended since.
func TestAReplyThatHasComeIsUsed(t *testing.T) {
	failed := errors.New("failed")
	for range 100 { // of two channels that are ready, select takes any
		c := calls.Get().(*call)
		c.nonce = &nonce{}
		c.ctx, c.cancel = context.WithCancel(t.Context())
		c.done <- failed
		c.cancel()
		if _, err := c.wait(operation{ctx: t.Context()}, nil); !errors.Is(err, failed) {
			t.Fatalf("error %v, want %v", err, failed)
		}
	}
}
