package synced

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Store is a [core.Store] that counts in the process and exchanges differences
// with a backend. It is made by [New] and ended by Close. Its methods, and
// those of what Bind returns, may be called concurrently.
type Store struct {
	backend Backend
	config  Config
	node    string
	now     func() int64 // microseconds since the Unix epoch
	table   *table
	stats   counters

	mu     sync.Mutex
	names  map[string]bool   // limiters bound
	limits map[string]uint64 // numbers of limits, by what tells their counters apart

	meters sync.Map // of Increment: time.Duration → *counting

	fetcher  fetcher
	reports  reports
	exchange exchange
	closed   atomic.Bool
}

var _ core.Store = (*Store)(nil)

// New returns a store that exchanges with the backend. With a positive Interval
// it starts a goroutine for that, which Close ends. The error wraps
// [core.ErrConfig] and names each field that is wrong. It is also an error to use
// a namespace that another store of this process uses with the same Backend
// value: Close gives it free.
func New(backend Backend, c Config) (*Store, error) {
	if err := c.check(backend); err != nil {
		return nil, err
	}
	c = c.filled()
	if backend != nil {
		if _, taken := claims.LoadOrStore(claim{backend, c.Namespace}, true); taken {
			return nil, fmt.Errorf("%w: Namespace: %q: is in use already", core.ErrConfig, c.Namespace)
		}
	}
	var node [16]byte
	_, _ = rand.Read(node[:]) // never fails
	s := &Store{
		backend: backend,
		config:  c,
		node:    hex.EncodeToString(node[:]),
		now:     microClock(c.Clock),
		names:   map[string]bool{},
		limits:  map[string]uint64{},
	}
	s.fetcher.windows = map[time.Duration]bool{}
	s.fetcher.counts.all = map[counterID]int64{}
	s.table = newTable(c.MaxKeys, func(hits int64) { s.stats.lost.Add(uint64(hits)) })
	for _, w := range c.Windows {
		s.fetcher.need(w)
	}
	if c.Interval > 0 {
		s.start(mathrand.N(c.Interval))
	}
	return s, nil
}

// microClock returns a clock of microseconds since the Unix epoch.
func microClock(clock func() time.Time) func() int64 {
	if clock != nil {
		return func() int64 { return clock().UnixMicro() }
	}
	start := time.Now()
	epoch := start.UnixMicro()
	return func() int64 { return epoch + time.Since(start).Microseconds() }
}

// Stats is what a Store has counted since it was made.
type Stats struct {
	Keys      int    // counters in the process now
	Exchanges uint64 // batches that the backend has answered, and fetches
	Failed    uint64 // exchanges and fetches that failed
	Pushed    uint64 // differences other than 0, in answered batches
	Lost      uint64 // hits that were never pushed: see Config.MaxKeys and Close
}

type counters struct{ exchanges, failed, pushed, lost atomic.Uint64 }

// Stats returns what the store has counted.
func (s *Store) Stats() Stats {
	return Stats{s.table.len(), s.stats.exchanges.Load(), s.stats.failed.Load(), s.stats.pushed.Load(), s.stats.lost.Load()}
}

func (s *Store) errClosed() error { return fmt.Errorf("synced: %w", core.ErrClosed) }
