package otelobserve

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/floodgate-go/floodgate/observe"
)

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
