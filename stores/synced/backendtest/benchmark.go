package backendtest

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// Benchmark measures how long Close takes with a million counters that have
// changed, and how long a process that starts then takes to fetch them. open
// returns an empty backend each time. Run it with -benchtime 1x.
func Benchmark(b *testing.B, open func(t testing.TB) synced.Backend) {
	const keys = 1_000_000
	config := synced.Config{Interval: time.Hour, Timeout: 10 * time.Minute, MaxKeys: 2 * keys, Log: slog.New(slog.DiscardHandler)}
	for b.Loop() {
		b.StopTimer()
		backend := open(b)
		start := func() (*synced.Store, *core.Limiter) {
			s, err := synced.New(backend, config)
			if err != nil {
				b.Fatal(err)
			}
			return s, core.Must(core.New(core.Config{Name: "api", Store: s, Rules: []core.Rule{
				{Name: "r", Limits: []core.Limit{{Quota: 100, Window: 24 * time.Hour, Aligned: true}}},
			}}))
		}
		s, l := start()
		for i := range keys {
			if _, err := l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: fmt.Sprint(i)}); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		began := time.Now()
		if err := s.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		closed := time.Since(began)
		began = time.Now()
		s, l = start()
		if err := s.Sync(context.Background()); err != nil {
			b.Fatal(err)
		}
		fetched := time.Since(began)
		if d, err := l.Peek(context.Background(), 0, core.Hit{Rule: "r", Key: fmt.Sprint(keys - 1)}); err != nil || d.Remaining != 99 {
			b.Fatalf("%d left, %v, want 99", d.Remaining, err)
		}
		b.ReportMetric(closed.Seconds(), "close-s")
		b.ReportMetric(keys/closed.Seconds(), "counters-written/s")
		b.ReportMetric(fetched.Seconds(), "fetch-s")
		if err := s.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
