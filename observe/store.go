package observe

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// operation has the counts of one operation of a limiter's store.
type operation struct {
	name   string
	errors atomic.Uint64
	took   durations
}

// stored counts an operation of the store.
func (l *limiter) stored(_ context.Context, name string, took time.Duration, err error) {
	op := find(&l.mu, &l.store, func(op *operation) bool { return op.name == name }, func() *operation {
		return &operation{name: name, took: newDurations(bounds)}
	})
	if err != nil {
		op.errors.Add(1)
	}
	op.took.add(took)
}

// event is how often an event has been reported.
type event struct {
	name  string
	count atomic.Uint64
}

// mostEvents is how many names of events are counted apart. The rest are others.
const (
	mostEvents = 16
	others     = "other"
)

// reported counts an event. A name that is not UTF-8 would end the export of all metrics:
// Prometheus panics, and OpenTelemetry fails.
func (l *limiter) reported(_ context.Context, name string) {
	l.event(strings.ToValidUTF8(name, "\ufffd")).count.Add(1)
}

func (l *limiter) event(name string) *event {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if i := slices.IndexFunc(l.events, func(e *event) bool { return e.name == name }); i >= 0 {
			return l.events[i]
		}
		if len(l.events) < mostEvents || name == others {
			e := &event{name: name}
			l.events = append(l.events, e)
			return e
		}
		name = others
	}
}
