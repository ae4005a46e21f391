package instances_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/inflight"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// running is the hash in which handlers count themselves: how many run in each process.
const running = "running"

// begins counts a handler that begins, and returns how many run in all processes.
var begins = redis.NewScript(`
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
local sum = 0
for _, n in ipairs(redis.call('HVALS', KEYS[1])) do sum = sum + n end
return sum`)

// inFlight is what a process does: callers that acquire one slot again and again.
type inFlight struct {
	Addr    string
	Process int
	Callers int
	Quota   int64
	Lease   time.Duration
	Holds   time.Duration // how long a handler runs
	Pauses  time.Duration // how long a caller that was denied waits, on average
}

func (w inFlight) limiter() (*inflight.Limiter, func() error, error) {
	client := redis.NewClient(&redis.Options{Addr: w.Addr, PoolSize: 64, ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience, DialTimeout: patience})
	store := redisstore.New(client, redisstore.Timeout(patience))
	l, err := inflight.New(inflight.Config{Name: "in-flight", Store: store, Max: w.Quota, Lease: w.Lease})
	return l, func() error { return errors.Join(l.Close(), store.Close(), client.Close()) }, err
}

const oneUser = "ann"

// run is the program of a process. It writes "over" when more than the quota run at a time.
func (w inFlight) run(begin, stopped <-chan struct{}) error {
	limiter, closeStore, err := w.limiter()
	if err != nil {
		return err
	}
	counting := redis.NewClient(&redis.Options{Addr: w.Addr, PoolSize: int(w.Quota), ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience, DialTimeout: patience})
	fmt.Println("ready")
	<-begin
	var callers sync.WaitGroup
	failed := make([]error, w.Callers)
	for i := range w.Callers {
		callers.Go(func() {
			for failed[i] == nil {
				select {
				case <-stopped:
					return
				default:
				}
				failed[i] = w.call(limiter, counting, stopped)
			}
		})
	}
	callers.Wait()
	return errors.Join(append(failed, counting.Close(), closeStore())...)
}

// call is one request.
func (w inFlight) call(limiter *inflight.Limiter, counting *redis.Client, stopped <-chan struct{}) error {
	ctx := context.Background()
	release, ok, err := limiter.Acquire(ctx, oneUser)
	if err != nil {
		return err
	}
	defer release()
	if !ok {
		pause(w.Pauses/2+rand.N(w.Pauses), stopped)
		return nil
	}
	field := fmt.Sprint(w.Process)
	n, err := begins.Run(ctx, counting, []string{running}, field).Int64()
	if n > w.Quota {
		fmt.Println("over")
		fmt.Fprintln(os.Stderr, "running at once:", n)
	}
	pause(w.Holds, stopped)
	return errors.Join(err, counting.HIncrBy(ctx, running, field, -1).Err())
}

// pause waits, until the process is stopped at most.
func pause(d time.Duration, stopped <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stopped:
	}
}
