package synced_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// manyKeys counts i hits of the i-th key.
func manyKeys(t *testing.T, l *core.Limiter, keys int) (hits int64) {
	t.Helper()
	for i := 1; i <= keys; i++ {
		if _, err := l.Take(context.Background(), int64(i), core.Hit{Rule: "r", Key: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		hits += int64(i)
	}
	return hits
}

// Close pushes what its time suffices for, and says what it could not push.
func TestCloseInTooLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Hour, Log: quiet})
		l := newLimiter(t, s, aligned(1_000_000, day))
		hits := manyKeys(t, l, 5000)
		b.set(func(b *shared) { b.latency = 100 * time.Millisecond })
		ctx, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
		defer cancel()
		err := s.Close(ctx)
		if want := fmt.Sprintf("%d hits could not be pushed", hits-b.total()); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if got := s.Stats().Lost; got != uint64(hits-b.total()) {
			t.Errorf("Lost: %d, want %d", got, hits-b.total())
		}
	})
}

// Close ends an exchange that is under way, and pushes everything once. The log blames nobody for it.
func TestCloseDuringAnExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil))})
		l := newLimiter(t, s, aligned(1_000_000, day))
		hits := manyKeys(t, l, 3500)
		b.set(func(b *shared) { b.latency = 100 * time.Millisecond })
		exchanged := make(chan error, 1)
		go func() { exchanged <- s.Sync(context.Background()) }()
		time.Sleep(150 * time.Millisecond) // in the middle of the second batch
		hits += manyKeys(t, l, 2000)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := b.total(); got != hits {
			t.Errorf("the backend has %d hits, want %d", got, hits)
		}
		if err := <-exchanged; err == nil || log.count("\n") > 0 {
			t.Errorf("the exchange has ended with the error %v, and logged %d lines", err, log.count("\n"))
		}
	})
}

// What was on its way in an exchange that failed is written by Close, once,
// together with what has changed since; an answer that is lost in Close too.
func TestCloseAfterAFailure(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("the answer of the last exchange was lost: ", lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newShared()
				s := newStore(t, b, synced.Config{Interval: time.Second, Log: quiet})
				l := newLimiter(t, s, aligned(1_000_000, day))
				hits := manyKeys(t, l, 3000)
				b.set(func(b *shared) {
					if lost {
						b.lose = 1
					} else {
						b.down = true
					}
				})
				if err := s.Sync(t.Context()); err == nil {
					t.Fatal("no error")
				}
				d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "500"})
				if err != nil {
					t.Fatal(err)
				}
				_ = l.Adjust(t.Context(), d, 0)
				hits += manyKeys(t, l, 1600)
				b.set(func(b *shared) { b.down, b.lose = false, 2 })
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
				if got := b.total(); got != hits {
					t.Errorf("the backend has %d hits, want %d", got, hits)
				}
			})
		})
	}
}

// A backend that does not answer holds Close up for a few tries, not for ever.
func TestCloseWithoutTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Hour, Timeout: 100 * time.Millisecond, Log: quiet})
		l := newLimiter(t, s, aligned(1_000_000, day))
		d, err := l.Take(t.Context(), 5, core.Hit{Rule: "r", Key: "refunded"})
		if err = errors.Join(err, s.Sync(t.Context()), l.Adjust(t.Context(), d, 0)); err != nil {
			t.Fatal(err)
		}
		manyKeys(t, l, 10)
		b.set(func(b *shared) { b.latency = time.Hour })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		err = s.Close(ctx)
		if err == nil || !strings.Contains(err.Error(), "55 hits could not be pushed") {
			t.Errorf("%v", err)
		}
		if d, want := time.Since(began), 3*100*time.Millisecond+2*50*time.Millisecond; d != want {
			t.Errorf("it took %v, want %v: three tries of one Timeout each, and two pauses", d, want)
		}
	})
}

// No charge that Take has allowed is missing after Close, however they meet.
func TestTakesDuringClose(t *testing.T) {
	for range 20 {
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Hour, Log: quiet})
		l := newLimiter(t, s, aligned(1_000_000, day))
		start, allowed := make(chan struct{}), make(chan int64)
		for g := range 4 {
			go func() {
				<-start
				n := int64(0)
				for i := 0; ; i++ {
					if _, err := l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: fmt.Sprint(g, i%100)}); err != nil {
						break
					}
					n++
				}
				allowed <- n
			}()
		}
		close(start)
		for s.Stats().Keys < 50 {
			runtime.Gosched()
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		for range 4 {
			n += <-allowed
		}
		if got := b.total(); got != n {
			t.Fatalf("the backend has %d hits, %d were allowed", got, n)
		}
	}
}
