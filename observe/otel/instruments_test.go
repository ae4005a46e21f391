package otelobserve_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/floodgate-go/floodgate/core"
	otelobserve "github.com/floodgate-go/floodgate/observe/otel"
)

// names are the metrics, with their units and descriptions.
var names = []string{
	"degraded {request} Requests decided without the shared counters.",
	"events {event} Events of a checker around the limiter, such as a login guard.",
	"near_limit {request} Allowed requests that left a tenth of the quota or less.",
	"queued_requests {request} Requests of this process that wait for their turn now.",
	"request.time_in_queue s How long requests waited for their turn, by the result.",
	"requests {request} Requests by the limit that decided and the result.",
	"store.duration s How long operations of the store took.",
	"store.errors {operation} Operations of the store that failed.",
}

// several are rules that differ in everything that a metric tells.
func several() []core.Rule {
	return []core.Rule{
		{Name: "user", Limits: []core.Limit{{Name: "user-1s"}, {Name: "user-1h"}}},
		{Name: "slots", MaxWait: time.Second, Limits: []core.Limit{{Name: "slots-1m"}}},
	}
}

// Without a MeterProvider, the metrics are those of the global one. Each says what it counts,
// and of which rule and limit.
func TestMetricsOfTheGlobalProvider(t *testing.T) {
	r := metric.NewManualReader()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(r)))
	defer otel.SetMeterProvider(noop.NewMeterProvider())
	f := core.Must(otelobserve.New(otelobserve.Config{})).Observe("api", several())
	f.Decided(t.Context(), core.Observation{Rule: 0, Limit: 1, Reason: core.ReasonOverLimit})
	f.Decided(t.Context(), core.Observation{Rule: 0, Limit: 1, Allowed: true})
	f.Decided(t.Context(), core.Observation{Rule: 1, Allowed: true, Remaining: 9, Capacity: 9, Waited: time.Second})
	f.Queued(t.Context(), 1, 1)
	f.Stored(t.Context(), "take", time.Second, errors.New("down"))
	f.Reported(t.Context(), "suspected")
	var m metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range m.ScopeMetrics[0].Metrics {
		got = append(got, strings.TrimPrefix(m.Name, "floodgate.rate_limiting.")+" "+m.Unit+" "+m.Description)
	}
	if slices.Sort(got); !slices.Equal(got, names) {
		t.Errorf("metrics\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(names, "\n"))
	}
	got = nil
	for _, s := range collect(t, r) {
		s = strings.TrimPrefix(s, "floodgate.rate_limiting.")
		if !strings.HasSuffix(s, "rule= 0") { // of the limiter as a whole
			got = append(got, s)
		}
	}
	want := []string{
		"degraded limiter=api 0",
		"events event=suspected,limiter=api 1",
		"near_limit limit=slots-1m,limiter=api,rule=slots 0",
		"near_limit limit=user-1h,limiter=api,rule=user 1",
		"near_limit limit=user-1s,limiter=api,rule=user 0",
		"queued_requests limiter=api,rule=slots 1",
		"request.time_in_queue limiter=api,result=allowed,rule=slots 1 1 [0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0]",
		"requests limit=slots-1m,limiter=api,result=allowed,rule=slots 1",
		"requests limit=slots-1m,limiter=api,result=denied,rule=slots 0",
		"requests limit=user-1h,limiter=api,result=allowed,rule=user 1",
		"requests limit=user-1h,limiter=api,result=denied,rule=user 1",
		"requests limit=user-1s,limiter=api,result=allowed,rule=user 0",
		"requests limit=user-1s,limiter=api,result=denied,rule=user 0",
		"store.duration limiter=api,operation=take 1 1 [0 0 0 0 0 0 0 0 0 0 1 0]",
		"store.errors limiter=api,operation=take 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("series\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// An event names the limit that has decided.
func TestASpanEventNamesTheLimit(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	o := core.Must(otelobserve.New(otelobserve.Config{Metrics: metric.NewMeterProvider()}))
	ctx, span := tracer.Start(t.Context(), "request")
	o.Observe("api", several()).Decided(ctx, core.Observation{Rule: 0, Limit: 1, Reason: core.ReasonOverLimit})
	span.End()
	want := "allowed=false,cost=0,limit=user-1h,limiter=api,reason=over limit,remaining=0,rule=user"
	if got := text(attribute.NewSet(recorder.Ended()[0].Events()[0].Attributes...)); got != want {
		t.Errorf("event %q, want %q", got, want)
	}
}

// failing is a meter that cannot make the instrument of a name, or cannot register a callback.
type failing struct {
	noop.Meter
	name string
}

// provider provides a meter.
type provider struct {
	noop.MeterProvider
	meter api.Meter
}

func (p provider) Meter(string, ...api.MeterOption) api.Meter { return p.meter }

func (f failing) err(name string) error {
	if name == f.name {
		return errFailing
	}
	return nil
}

var errFailing = errors.New("the meter fails")

func (f failing) Int64ObservableCounter(name string, _ ...api.Int64ObservableCounterOption) (api.Int64ObservableCounter, error) {
	return noop.Int64ObservableCounter{}, f.err(name)
}

func (f failing) Int64ObservableUpDownCounter(name string, _ ...api.Int64ObservableUpDownCounterOption) (api.Int64ObservableUpDownCounter, error) {
	return noop.Int64ObservableUpDownCounter{}, f.err(name)
}

func (f failing) Float64Histogram(name string, _ ...api.Float64HistogramOption) (api.Float64Histogram, error) {
	return noop.Float64Histogram{}, f.err(name)
}

func (f failing) RegisterCallback(api.Callback, ...api.Observable) (api.Registration, error) {
	return noop.Registration{}, f.err("callback")
}

// New returns the meter's error, whatever the meter cannot make.
func TestTheErrorOfTheMeter(t *testing.T) {
	all := []string{"callback", "none"}
	for _, n := range names {
		n, _, _ = strings.Cut(n, " ")
		all = append(all, "floodgate.rate_limiting."+n)
	}
	for _, name := range all {
		o, err := otelobserve.New(otelobserve.Config{Metrics: provider{meter: failing{name: name}}})
		if fails := name != "none"; errors.Is(err, errFailing) != fails || (o == nil) != fails {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
