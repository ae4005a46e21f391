package otelobserve

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/observe"
)

const prefix = "floodgate.rate_limiting."

// instruments makes the instruments of a meter.
type instruments struct {
	meter metric.Meter
	errs  []error
}

func (m *instruments) counter(name, unit, text string) metric.Int64ObservableCounter {
	i, err := m.meter.Int64ObservableCounter(prefix+name, metric.WithUnit(unit), metric.WithDescription(text))
	m.errs = append(m.errs, err)
	return i
}

func (m *instruments) gauge(name, unit, text string) metric.Int64ObservableUpDownCounter {
	i, err := m.meter.Int64ObservableUpDownCounter(prefix+name, metric.WithUnit(unit), metric.WithDescription(text))
	m.errs = append(m.errs, err)
	return i
}

func (m *instruments) histogram(name, text string, bounds []time.Duration) metric.Float64Histogram {
	seconds := make([]float64, len(bounds))
	for i, b := range bounds {
		seconds[i] = b.Seconds()
	}
	h, err := m.meter.Float64Histogram(prefix+name, metric.WithUnit("s"), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(seconds...))
	m.errs = append(m.errs, err)
	return h
}

// histograms record how long something took.
type histograms struct{ store, queue metric.Float64Histogram }

// waited records how long a request has waited.
func (h *histograms) waited(ctx context.Context, limiter, rule attribute.KeyValue, d *core.Decision) {
	result := observe.Allowed
	switch {
	case d.Reason == core.ReasonFailed:
		result = observe.Failed
	case !d.Allowed:
		result = observe.Denied
	}
	h.queue.Record(ctx, d.Waited.Seconds(), metric.WithAttributes(limiter, rule, attribute.String("result", result)))
}

// reader exports the counts.
type reader struct {
	counts                                   *observe.Counts
	requests, near, degraded, errors, events metric.Int64ObservableCounter
	queued                                   metric.Int64ObservableUpDownCounter
}

func (r *reader) read(_ context.Context, to metric.Observer) error {
	for _, l := range r.counts.Read() {
		limiter := attribute.String("limiter", l.Name)
		count := func(i metric.Int64ObservableCounter, n uint64, attrs ...attribute.KeyValue) {
			to.ObserveInt64(i, int64(n), metric.WithAttributes(append(attrs, limiter)...)) //nolint:gosec // 2^63 requests take longer
		}
		for x := range l.Results() {
			count(r.requests, x.Count, attribute.String("rule", x.Rule), attribute.String("limit", x.Limit), attribute.String("result", x.Result))
		}
		for _, n := range l.Limits {
			count(r.near, n.Near, attribute.String("rule", n.Rule), attribute.String("limit", n.Limit))
		}
		count(r.degraded, l.Degraded)
		for _, s := range l.Store {
			count(r.errors, s.Errors, attribute.String("operation", s.Operation))
		}
		for _, q := range l.Queues {
			if q.Rule != "" {
				to.ObserveInt64(r.queued, q.Waiting, metric.WithAttributes(limiter, attribute.String("rule", q.Rule)))
			}
		}
		for _, e := range l.Events {
			count(r.events, e.Count, attribute.String("event", e.Event))
		}
	}
	return nil
}
