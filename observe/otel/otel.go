package otelobserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/observe"
)

// Config configures [New].
type Config struct {
	// Metrics provides the meter. nil: otel.GetMeterProvider(), as it is when New is called.
	Metrics metric.MeterProvider
}

// Observer is a [core.Observer]. [New] makes it. One serves any number of limiters. Its methods may
// be called concurrently.
type Observer struct {
	counts       *observe.Counts
	took         histograms
	registration metric.Registration
}

var _ core.Observer = (*Observer)(nil)

const scope = "github.com/floodgate-go/floodgate/observe/otel"

// New returns an observer whose metrics are registered. The error is the meter's. Call Close when
// its limiters are no longer needed.
func New(c Config) (*Observer, error) {
	if c.Metrics == nil {
		c.Metrics = otel.GetMeterProvider()
	}
	o := &Observer{counts: observe.NewCounts()}
	m := instruments{meter: c.Metrics.Meter(scope)}
	r := reader{
		counts:   o.counts,
		requests: m.counter("requests", "{request}", "Requests by the limit that decided and the result."),
		near:     m.counter("near_limit", "{request}", "Allowed requests that left a tenth of the quota or less."),
		degraded: m.counter("degraded", "{request}", "Requests decided without the shared counters."),
		errors:   m.counter("store.errors", "{operation}", "Operations of the store that failed."),
		events:   m.counter("events", "{event}", "Events of a checker around the limiter, such as a login guard."),
		queued:   m.gauge("queued_requests", "{request}", "Requests of this process that wait for their turn now."),
	}
	o.took = histograms{
		store: m.histogram("store.duration", "How long operations of the store took.", observe.Bounds()),
		queue: m.histogram("request.time_in_queue", "How long requests waited for their turn, by the result.", observe.RequestBounds()),
	}
	err := errors.Join(m.errs...)
	if err == nil {
		o.registration, err = m.meter.RegisterCallback(r.read, r.requests, r.near, r.degraded, r.errors, r.events, r.queued)
	}
	if err != nil {
		return nil, fmt.Errorf("otelobserve: %w", err)
	}
	return o, nil
}

// Close ends the export of the counters. The two histograms and the events of spans go on. The
// error is the meter's.
func (o *Observer) Close() error { return o.registration.Unregister() }

// Observe implements [core.Observer].
func (o *Observer) Observe(limiter string, rules []core.Rule) core.ObserverFuncs {
	f := o.counts.Observe(limiter, rules)
	counts := f
	name := attribute.String("limiter", limiter)
	f.Decided = func(ctx context.Context, d core.Decision, rule, limit int) {
		counts.Decided(ctx, d, rule, limit)
		if d.Waited > 0 {
			text := ""
			if rule >= 0 {
				text = rules[rule].Name
			}
			o.took.waited(ctx, name, attribute.String("rule", text), &d)
		}
		if !d.Allowed || d.DryRun || d.Degraded {
			addEvent(ctx, limiter, rules, &d, rule, limit)
		}
	}
	f.Stored = func(ctx context.Context, operation string, took time.Duration, err error) {
		counts.Stored(ctx, operation, took, err)
		o.took.store.Record(ctx, took.Seconds(), metric.WithAttributes(name, attribute.String("operation", operation)))
	}
	return f
}
