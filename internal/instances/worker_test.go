package instances_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/processtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/pgbackend"
)

// patience is the stores' deadline, for machines that may be busy.
const patience = 30 * time.Second

// How a worker takes.
const (
	atOnce      = 4  // goroutines
	betweenSync = 5  // takes between two exchanges of a store that exchanges
	enough      = 25 // denials in a row after which a worker is done
)

// work is what a process does: it takes from the keys of a limiter.
type work struct {
	Kind, Addr string
	Limiter    string
	Limits     [][]core.Limit // of each rule
	Keys       int            // of the second rule, if there is one; the first has one
	AtOnce     int            // goroutines, atOnce if it is 0
	InFlight   *inFlight      // it does this instead
}

// rules returns the rules as the kind of store can count for them: PostgreSQL in windows that begin
// at the same time everywhere, which are so long that hardly a test runs when one begins.
func (w work) rules() (rules []core.StoreRule) {
	for i, limits := range w.Limits {
		r := core.StoreRule{Name: fmt.Sprint("r", i)}
		for j, l := range limits {
			l.Name = fmt.Sprint("l", j)
			if strings.HasPrefix(w.Kind, "postgres") {
				l.Aligned, l.Window = true, 300*l.Window
			}
			r.Limits = append(r.Limits, l)
		}
		rules = append(rules, r)
	}
	return rules
}

// batch is one take: of the key that all share, and of another one.
func (w work) batch(key int) *core.Batch {
	b := &core.Batch{Op: core.OpTake, Items: []core.Item{{Key: []byte("all"), Cost: 1, Results: make([]core.Result, len(w.Limits[0]))}}}
	if w.Keys > 0 {
		b.Items = append(b.Items, core.Item{Rule: 1, Key: fmt.Append(nil, "own", key), Cost: 1, Results: make([]core.Result, len(w.Limits[1]))})
	}
	return b
}

// opened is a store as a worker uses it.
type opened struct {
	counters core.Counters
	sync     func() error // nil: the store needs none
	close    func() error
}

func (w work) open(ctx context.Context) (o opened, err error) {
	var store core.Store
	switch w.Kind {
	case "redis", "cluster":
		var client redis.UniversalClient
		if w.Kind == "redis" {
			client = redis.NewClient(&redis.Options{Addr: w.Addr, ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience, DialTimeout: patience})
		} else {
			client = redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(w.Addr, ","), ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience, DialTimeout: patience})
		}
		r := redisstore.New(client, redisstore.Timeout(patience), redisstore.WithoutDenialCache())
		store, o.close = r, func() error { return errors.Join(r.Close(), client.Close()) }
	case "memcached":
		m, err := memcachedstore.New([]string{w.Addr}, memcachedstore.Timeout(patience), memcachedstore.WithoutDenialCache())
		if err != nil {
			return o, err
		}
		store, o.close = m, m.Close
	case "postgres", "postgres, each take": // with an exchange now and then, or for each take
		pool, err := pgxpool.New(ctx, w.Addr)
		if err != nil {
			return o, err
		}
		backend := pgbackend.New(pool)
		if err := backend.CreateTables(ctx); err != nil {
			return o, err
		}
		c := synced.Config{Timeout: patience}
		if w.Kind == "postgres" {
			c.Interval = 24 * time.Hour // only by Sync
		}
		s, err := synced.New(backend, c)
		if err != nil {
			return o, err
		}
		if w.Kind == "postgres" {
			o.sync = func() error { return s.Sync(ctx) }
		}
		store = s
		o.close = func() error {
			defer pool.Close()
			return s.Close(ctx)
		}
	}
	o.counters, err = store.Open(w.Limiter, w.rules())
	return o, err
}

func TestMain(m *testing.M) {
	processtest.Main(m, func() {
		if err := worker(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	})
}

// worker is the program of the processes of this package's tests. Its argument is its work, as
// JSON. It takes until it has been denied often enough, and writes "try" before each take, and
// after it the number of the key with "allowed", or "denied".
func worker() error {
	var w work
	if err := json.Unmarshal([]byte(os.Args[1]), &w); err != nil {
		return err
	}
	begin, stopped := processtest.Signals()
	if w.InFlight != nil {
		return w.InFlight.run(begin, stopped)
	}
	store, err := w.open(context.Background())
	if err != nil {
		return err
	}
	fmt.Println("ready")
	<-begin
	workers := cmp.Or(w.AtOnce, atOnce)
	if store.sync != nil {
		workers = 1 // so that no more are on their way than the test says
	}
	var wg sync.WaitGroup
	failed := make([]error, workers)
	for g := range workers {
		wg.Go(func() { failed[g] = w.run(store, g, stopped) })
	}
	wg.Wait()
	fmt.Println("done")
	<-stopped
	return errors.Join(append(failed, store.close())...)
}

func (w work) run(store opened, first int, stopped <-chan struct{}) error {
	denied := 0
	for i := 0; denied < enough*max(1, w.Keys); i++ {
		select {
		case <-stopped:
			return nil
		default:
		}
		if store.sync != nil && i%betweenSync == 0 {
			if err := store.sync(); err != nil {
				return err
			}
		}
		key := (first + i) % max(1, w.Keys)
		batch := w.batch(key)
		fmt.Println("try")
		if err := store.counters.Do(context.Background(), batch); err != nil {
			return err
		}
		if batch.Allowed {
			denied = 0
			fmt.Println("allowed", key)
		} else {
			denied++
			fmt.Println("denied")
		}
	}
	if store.sync != nil {
		return store.sync()
	}
	return nil
}
