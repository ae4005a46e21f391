package otelobserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/observe"
)

// Config configures [New]. All fields are optional.
type Config struct {
	// Metrics provides the meter. nil: otel.GetMeterProvider(), as it is when New is
	// called.
	Metrics metric.MeterProvider
	// NoSpanEvents leaves out the events of spans.
	NoSpanEvents bool
}

// Observer is a [core.Observer]. [New] makes it. One serves any number of limiters. Its
// methods may be called concurrently.
type Observer struct {
	counts       *observe.Counts
	took         metric.Float64Histogram
	noSpanEvents bool
	registration metric.Registration
}

var _ core.Observer = (*Observer)(nil)

const scope = "github.com/floodgate-go/floodgate/observe/otel"

// New returns an observer whose metrics are registered. The error is the meter's. Call
// Close when its limiters are no longer needed.
func New(c Config) (*Observer, error) {
	if c.Metrics == nil {
		c.Metrics = otel.GetMeterProvider()
	}
	meter := c.Metrics.Meter(scope)
	o := &Observer{counts: observe.NewCounts(), noSpanEvents: c.NoSpanEvents}
	var errs []error
	counter := func(name, unit, text string) metric.Int64ObservableCounter {
		i, err := meter.Int64ObservableCounter("floodgate.rate_limiting."+name, metric.WithUnit(unit), metric.WithDescription(text))
		errs = append(errs, err)
		return i
	}
	r := reader{
		counts:   o.counts,
		requests: counter("requests", "{request}", "Requests by the limit that decided and the result."),
		near:     counter("near_limit", "{request}", "Allowed requests that left a tenth of the quota or less."),
		degraded: counter("degraded", "{request}", "Requests decided without the shared counters."),
		errors:   counter("store.errors", "{operation}", "Operations of the store that failed."),
		events:   counter("events", "{event}", "Events of a checker around the limiter, such as a login guard."),
	}
	var bounds []float64
	for _, b := range observe.Bounds() {
		bounds = append(bounds, b.Seconds())
	}
	var err error
	o.took, err = meter.Float64Histogram("floodgate.rate_limiting.store.duration", metric.WithUnit("s"),
		metric.WithDescription("How long operations of the store took."), metric.WithExplicitBucketBoundaries(bounds...))
	if err = errors.Join(append(errs, err)...); err == nil {
		o.registration, err = meter.RegisterCallback(r.read, r.requests, r.near, r.degraded, r.errors, r.events)
	}
	if err != nil {
		return nil, fmt.Errorf("otelobserve: %w", err)
	}
	return o, nil
}

// Close ends the export of the metrics. The error is the meter's.
func (o *Observer) Close() error { return o.registration.Unregister() }

// Observe implements [core.Observer].
func (o *Observer) Observe(limiter string, rules []core.Rule) core.ObserverFuncs {
	f := o.counts.Observe(limiter, rules)
	counted, stored := f.Decided, f.Stored
	if !o.noSpanEvents {
		s := &spans{limiter, rules}
		f.Decided = func(ctx context.Context, seen core.Observation) {
			counted(ctx, seen)
			if !seen.Allowed || seen.Rehearsal || seen.Degraded {
				s.add(ctx, &seen)
			}
		}
	}
	f.Stored = func(ctx context.Context, operation string, took time.Duration, err error) {
		stored(ctx, operation, took, err)
		o.took.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("limiter", limiter), attribute.String("operation", operation)))
	}
	return f
}

// spans adds events to the spans of requests.
type spans struct {
	limiter string
	rules   []core.Rule
}

// add adds an event to the span of a request that was denied, or would have been, or that
// was decided on without the shared counters.
func (s *spans) add(ctx context.Context, o *core.Observation) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	attrs := []attribute.KeyValue{
		attribute.String("limiter", s.limiter),
		attribute.Bool("allowed", o.Allowed),
		attribute.String("reason", o.Reason.String()),
		attribute.Int64("cost", o.Cost),
	}
	if o.Rule >= 0 {
		attrs = append(attrs,
			attribute.String("rule", s.rules[o.Rule].Name),
			attribute.String("limit", s.rules[o.Rule].Limits[o.Limit].Name),
			attribute.Int64("remaining", o.Remaining))
	}
	if o.RetryAfter > 0 && o.RetryAfter != core.Never {
		attrs = append(attrs, attribute.Float64("retry_after", o.RetryAfter.Seconds()))
	}
	for name, is := range map[string]bool{"shadow": o.Shadow, "rehearsal": o.Rehearsal, "degraded": o.Degraded} {
		if is {
			attrs = append(attrs, attribute.Bool(name, true))
		}
	}
	if o.Err != nil {
		attrs = append(attrs, attribute.String("error", o.Err.Error()))
	}
	span.AddEvent("floodgate.decision", trace.WithAttributes(attrs...))
}

// reader exports the counts.
type reader struct {
	counts                                   *observe.Counts
	requests, near, degraded, errors, events metric.Int64ObservableCounter
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
			if !n.Shadow {
				count(r.near, n.Near, attribute.String("rule", n.Rule), attribute.String("limit", n.Limit))
			}
		}
		count(r.degraded, l.Degraded)
		for _, s := range l.Store {
			count(r.errors, s.Errors, attribute.String("operation", s.Operation))
		}
		for _, e := range l.Events {
			count(r.events, e.Count, attribute.String("event", e.Event))
		}
	}
	return nil
}
