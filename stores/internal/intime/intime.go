// Package intime runs a store's operations within a deadline, whatever the store does: after a
// timeout the operation continues with a copy.
package intime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

// Runner runs operations. Its methods may be called concurrently.
type Runner struct {
	timeout time.Duration
	running chan struct{} // one element for each operation under way
}

// maxRunning is the highest number of operations under way at a time, including those whose caller
// has left. It bounds how many pile up if a store hangs.
const maxRunning = 4096

// New returns a runner whose operations have this timeout.
func New(timeout time.Duration) *Runner {
	return &Runner{timeout, make(chan struct{}, maxRunning)}
}

// The errors of operations that something other than the store has ended.
var (
	ErrTimeout = errors.New("no answer in time")
	ErrBusy    = notcharged.Error(errors.New("too many operations wait for an answer"))
)

// Doer does operations, as core.Counters do.
type Doer interface {
	Do(ctx context.Context, b *core.Batch) error
}

// operation is one call of the store, with all its memory.
type operation struct {
	batch   core.Batch
	items   []core.Item
	keys    []byte
	quotas  []int64
	results []core.Result
}

// Channels and timers are not pooled: a pooled one would tie a test in a synctest bubble to
// operations outside it.
var operations = sync.Pool{New: func() any { return new(operation) }}

// Do does the batch's operation with inner. It returns ErrTimeout if the time is over, and the
// context's cause if the context ends: the operation then continues without a caller. A panic of
// the store is returned as an error, because no request's goroutine could recover from it.
func (r *Runner) Do(ctx context.Context, inner Doer, batch *core.Batch) error {
	select {
	case r.running <- struct{}{}:
	default:
		return ErrBusy
	}
	o := operations.Get().(*operation)
	o.copy(batch)
	done := make(chan error, 1)
	go func() {
		err := o.run(ctx, inner)
		<-r.running
		done <- err
	}()
	timer := time.NewTimer(r.timeout)
	defer timer.Stop()
	select {
	case err := <-done:
		if err == nil {
			o.copyBack(batch)
		}
		o.free()
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return ErrTimeout
	}
}

func (o *operation) run(ctx context.Context, inner Doer) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the store panicked: %v", v)
		}
	}()
	return inner.Do(ctx, &o.batch)
}

func (o *operation) copy(batch *core.Batch) {
	o.batch, o.items, o.keys, o.quotas, o.results = *batch, o.items[:0], o.keys[:0], o.quotas[:0], o.results[:0]
	for i := range batch.Items {
		it := batch.Items[i]
		o.keys = append(o.keys, it.Key...)
		o.quotas = append(o.quotas, it.Quotas...)
		o.results = append(o.results, it.Results...)
		o.items = append(o.items, it)
	}
	key, quota, result := 0, 0, 0
	for i := range o.items {
		it := &o.items[i]
		k, r := key+len(it.Key), result+len(it.Results)
		it.Key, it.Results = o.keys[key:k:k], o.results[result:r:r]
		key, result = k, r
		if it.Quotas != nil {
			q := quota + len(it.Quotas)
			it.Quotas = o.quotas[quota:q:q]
			quota = q
		}
	}
	o.batch.Items = o.items
}

func (o *operation) copyBack(batch *core.Batch) {
	batch.Allowed, batch.Degraded, batch.Cached = o.batch.Allowed, o.batch.Degraded, o.batch.Cached
	for i := range batch.Items {
		batch.Items[i].At, batch.Items[i].Unknown = o.items[i].At, o.items[i].Unknown
		copy(batch.Items[i].Results, o.items[i].Results)
	}
}

func (o *operation) free() {
	clear(o.items)
	o.batch.Items = nil
	operations.Put(o)
}
