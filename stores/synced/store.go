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
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/names"
)

// Store is a [core.Store] that counts in the process and exchanges differences
// with a backend. It is made by [New] and ended by Close. Its methods, and
// those of the Counters that Open returns, may be called concurrently.
type Store struct {
	backend Backend
	config  Config
	node    string
	now     func() int64 // microseconds since the Unix epoch
	table   *table
	stats   counters

	names    *names.Owner // of the limiters that this store has bound
	bindings []binding    // guarded by the package's bindings

	mu     sync.Mutex
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
// [core.ErrConfig] and names each field that is wrong. New also returns an
// error if another store of this process uses the namespace with the same
// Backend value and has not been closed.
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
		now:     meter.Clock(c.Clock),
		names:   names.New("", true), // other stores may have the names: see claimName
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

// Stats are the counts of a Store since it was made.
type Stats struct {
	Keys      int    // counters in the process now
	Exchanges uint64 // batches that the backend has answered, and fetches
	Failed    uint64 // exchanges and fetches that failed
	Pushed    uint64 // differences other than 0, in answered batches
	Lost      uint64 // hits that were never pushed: see Config.MaxKeys and Close
}

type counters struct{ exchanges, failed, pushed, lost atomic.Uint64 }

// Config returns the configuration that New was given, with the defaults of its fields.
func (s *Store) Config() Config { return s.config }

// Stats returns the counts since the store was made.
func (s *Store) Stats() Stats {
	return Stats{s.table.len(), s.stats.exchanges.Load(), s.stats.failed.Load(), s.stats.pushed.Load(), s.stats.lost.Load()}
}

func (s *Store) errClosed() error { return fmt.Errorf("synced: %w", core.ErrClosed) }
