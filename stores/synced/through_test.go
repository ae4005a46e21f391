package synced_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// With Interval 0, processes together admit no more than the quota.
func TestThrough(t *testing.T) {
	b := newShared()
	_, limiters := newNodes(t, b, 4, synced.Config{}, aligned(20, time.Hour))
	var admitted atomic.Int64
	done := make(chan bool)
	for _, l := range limiters {
		for range 40 {
			go func() {
				d, err := l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"})
				if err != nil {
					t.Error(err)
				}
				if d.Allowed {
					admitted.Add(1)
				}
				done <- true
			}()
		}
	}
	for range 160 {
		<-done
	}
	if n := admitted.Load(); n > 20 || n < 10 {
		t.Errorf("%d of 160 admitted, want at most 20", n)
	}
	if got := b.total(); got != admitted.Load() {
		t.Errorf("the backend has %d hits, %d were admitted", got, admitted.Load())
	}
	for range 30 {
		take(t, limiters[0], "k")
	}
	if got := b.total(); got != 20 {
		t.Errorf("in the end the backend has %d hits, want 20", got)
	}
	b.set(func(b *shared) { b.down = true })
	if _, err := limiters[0].Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"}); !errors.Is(err, errDown) {
		t.Errorf("without the backend: %v", err)
	}
}
