package resilient

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// operation is one call of the store with all that it works on, so that it can
// go on when nobody waits for it any more.
type operation struct {
	batch   core.Batch
	items   []core.Item
	keys    []byte
	results []core.Result
}

// Channels and timers are not kept with it: used again, they would tie a test
// in a synctest bubble to what has run outside.
var operations = sync.Pool{New: func() any { return new(operation) }}

var (
	errTimeout = errors.New("resilient: no answer in time")
	errBusy    = errors.New("resilient: too many operations wait for an answer")
)

// inTime has the store do op, and comes back in time. What the store then still
// does, it does to a copy.
func (b *bound) inTime(ctx context.Context, batch *core.Batch, op func(core.Bound, context.Context, *core.Batch) error) error {
	select {
	case b.running <- struct{}{}:
	default:
		return errBusy
	}
	o := operations.Get().(*operation)
	o.copy(batch)
	done := make(chan error, 1)
	go func() {
		err := o.run(ctx, b.inner, op)
		<-b.running
		done <- err
	}()
	timer := time.NewTimer(b.config.Timeout)
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
		return errTimeout
	}
}

// run makes an error of a panic: it is in no request's goroutine, where
// somebody could recover from it.
func (o *operation) run(ctx context.Context, inner core.Bound, op func(core.Bound, context.Context, *core.Batch) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("resilient: the store panicked: %v", v)
		}
	}()
	return op(inner, ctx, &o.batch)
}

func (o *operation) copy(batch *core.Batch) {
	o.batch, o.items, o.keys, o.results = *batch, o.items[:0], o.keys[:0], o.results[:0]
	for i := range batch.Items {
		it := batch.Items[i]
		o.keys = append(o.keys, it.Key...)
		o.results = append(o.results, it.Results...)
		o.items = append(o.items, it)
	}
	key, result := 0, 0
	for i := range o.items {
		it := &o.items[i]
		k, r := key+len(it.Key), result+len(it.Results)
		it.Key, it.Results = o.keys[key:k:k], o.results[result:r:r]
		key, result = k, r
	}
	o.batch.Items = o.items
}

func (o *operation) copyBack(batch *core.Batch) {
	batch.Allowed, batch.Degraded = o.batch.Allowed, o.batch.Degraded
	for i := range batch.Items {
		batch.Items[i].At = o.items[i].At
		copy(batch.Items[i].Results, o.items[i].Results)
	}
}

func (o *operation) free() {
	clear(o.items)
	o.batch.Items = nil
	operations.Put(o)
}
