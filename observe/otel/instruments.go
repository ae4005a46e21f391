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
func (h *histograms) waited(ctx context.Context, limiter attribute.KeyValue, rules []core.Rule, o *core.Observation) {
	rule, result := "", observe.Allowed
	if o.Rule >= 0 {
		rule = rules[o.Rule].Name
	}
	switch {
	case o.Reason == core.ReasonFailed:
		result = observe.Failed
	case !o.Allowed:
		result = observe.Denied
	}
	h.queue.Record(ctx, o.Waited.Seconds(), metric.WithAttributes(limiter, attribute.String("rule", rule), attribute.String("result", result)))
}
