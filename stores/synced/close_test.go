package synced_test

import (
	"bytes"
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

// measured returns a store that has measured how fast its backend is: 100 counters in
// 100 ms.
func measured(t *testing.T) (b *shared, s *synced.Store, l *core.Limiter, log *bytes.Buffer) {
	t.Helper()
	b, log = newShared(), new(bytes.Buffer)
	s = newStore(t, b, synced.Config{Interval: time.Hour, BatchSize: 100, Log: slog.New(slog.NewTextHandler(log, nil))})
	l = newLimiter(t, s, aligned(1_000_000, day))
	b.set(func(b *shared) { b.latency = 100 * time.Millisecond })
	for i := range 200 {
		take(t, l, fmt.Sprint("early", i))
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b, s, l, log
}

// Close says before it begins what it can write in its time, writes the largest
// differences first, and says afterwards what it could not write.
func TestCloseInTooLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, l, log := measured(t)
		before := b.total()
		const keys = 5000
		hits := manyKeys(t, l, keys)
		ctx, cancel := context.WithTimeout(t.Context(), 1050*time.Millisecond)
		defer cancel()
		err := s.Close(ctx)
		written := int64(0)
		for i := range int64(1000) {
			written += keys - i
		}
		if got := b.total() - before; got != written {
			t.Errorf("%d hits were written, want %d: those of the 1,000 largest counters", got, written)
		}
		if want := fmt.Sprintf("%d hits could not be pushed, of 4000 counters", hits-written); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if got := s.Stats().Lost; got != uint64(hits-written) {
			t.Errorf("Lost: %d, want %d", got, hits-written)
		}
		if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, fmt.Sprintf("counters=5000 hits=%d can_write=1050 time=1.05s", hits)) {
			t.Errorf("the log:\n%s", text)
		}
	})
}

// Close says what it has to write if that is more than one batch. It warns only
// if the time does not suffice for all.
func TestWhatCloseAnnounces(t *testing.T) {
	for _, row := range []struct {
		keys int
		time time.Duration
		want string
	}{
		{99, time.Second, ""},
		{100, time.Second, ""},
		{101, time.Second, "level=INFO"},
		{1000, time.Second, "level=INFO"}, // 100 in 100 ms
		{1000, time.Second - time.Millisecond, "level=WARN"},
		{1001, time.Second, "level=WARN"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, s, l, log := measured(t)
			manyKeys(t, l, row.keys)
			b.set(func(b *shared) { b.latency = 0 })
			ctx, cancel := context.WithTimeout(t.Context(), row.time)
			defer cancel()
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
			if text := log.String(); row.want == "" && text != "" || !strings.Contains(text, row.want) || strings.Count(text, "\n") > 1 {
				t.Errorf("%d counters in %v: the log: %q, want %q", row.keys, row.time, text, row.want)
			}
		})
	}
}

// Close during an exchange of many counters pushes the largest differences
// first too: the exchange ends with the batch that is under way.
func TestCloseDuringAnExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Minute, BatchSize: 100, Log: quiet})
		l := newLimiter(t, s, aligned(1_000_000, day))
		manyKeys(t, l, 50)
		b.set(func(b *shared) { b.latency = 100 * time.Millisecond })
		for i := range 5000 {
			take(t, l, fmt.Sprint("small", i))
		}
		exchanged := make(chan error, 1)
		go func() { exchanged <- s.Sync(context.Background()) }()
		time.Sleep(50 * time.Millisecond) // in the middle of the first batch
		before := b.total()
		big := core.Hit{Rule: "r", Key: "big"}
		if _, err := l.Take(context.Background(), 5000, big); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that the time was too short", err)
		}
		if got := b.total() - before; got < 5000 {
			t.Errorf("%d hits were written: the largest difference is not among them", got)
		}
		if err := <-exchanged; !errors.Is(err, core.ErrClosed) {
			t.Errorf("the exchange: %v, want ErrClosed", err)
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
				s := newStore(t, b, synced.Config{Interval: time.Second, BatchSize: 100, Log: quiet})
				l := newLimiter(t, s, aligned(1_000_000, day))
				hits := manyKeys(t, l, 1000)
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
				hits += manyKeys(t, l, 600)
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

// That Close ends an exchange that is under way says nothing about the backend.
func TestCloseDoesNotSayThatTheBackendDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Second, Timeout: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))})
		take(t, newLimiter(t, s, aligned(10, day)), "k")
		b.set(func(b *shared) { b.latency = time.Minute })
		time.Sleep(2 * time.Second) // an exchange is under way
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Close(ctx); err == nil {
			t.Error("the hit has been pushed")
		}
		synctest.Wait()
		if log.Len() > 0 {
			t.Errorf("logged\n%s", &log)
		}
	})
}

// A backend that does not answer holds Close up for a few tries, not for ever.
func TestCloseWithoutTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Hour, Timeout: 100 * time.Millisecond, Log: quiet})
		l := newLimiter(t, s, aligned(1_000_000, day))
		manyKeys(t, l, 10)
		b.set(func(b *shared) { b.latency = time.Hour })
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		err := s.Close(ctx)
		if err == nil || !strings.Contains(err.Error(), "55 hits could not be pushed, of 10 counters") {
			t.Errorf("%v", err)
		}
		if d, want := time.Since(began), 3*100*time.Millisecond+2*50*time.Millisecond; d != want {
			t.Errorf("it took %v, want %v: three tries of one Timeout each, and two pauses", d, want)
		}
	})
}

// No charge that Take has admitted is missing after Close, however they meet.
func TestTakesDuringClose(t *testing.T) {
	for range 20 {
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Hour, Log: quiet})
		l := newLimiter(t, s, aligned(1_000_000, day))
		start, admitted := make(chan struct{}), make(chan int64)
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
				admitted <- n
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
			n += <-admitted
		}
		if got := b.total(); got != n {
			t.Fatalf("the backend has %d hits, %d were admitted", got, n)
		}
	}
}
