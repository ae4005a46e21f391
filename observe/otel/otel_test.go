package otelobserve_test

import (
	"context"
	"errors"
	"fmt"
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

func text(set attribute.Set) string { return set.Encoded(attribute.DefaultEncoder()) }

// collect returns the data points, as text, sorted.
func collect(t testing.TB, r metric.Reader) (all []string) {
	t.Helper()
	var m metricdata.ResourceMetrics
	if err := r.Collect(context.Background(), &m); err != nil {
		t.Fatal(err)
	}
	for _, s := range m.ScopeMetrics {
		for _, metric := range s.Metrics {
			switch data := metric.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					all = append(all, fmt.Sprint(metric.Name, " ", text(p.Attributes), " ", p.Value))
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					all = append(all, fmt.Sprint(metric.Name, " ", text(p.Attributes), " ", p.Count, " ", p.Sum, " ", p.BucketCounts))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// rules are rules that differ in everything that a metric tells.
func rules() []core.Rule {
	return []core.Rule{
		{Name: "user", Limits: []core.Limit{{Name: "user-1s"}, {Name: "user-1h"}}},
		{Name: "slots", MaxWait: time.Second, Limits: []core.Limit{{Name: "slots-1m"}}},
	}
}

// Without a MeterProvider, the metrics are those of the global one. Each says what it counts,
// and of which rule and limit.
func TestMetrics(t *testing.T) {
	r := metric.NewManualReader()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(r)))
	defer otel.SetMeterProvider(noop.NewMeterProvider())
	o := core.Must(otelobserve.New(otelobserve.Config{}))
	f := o.Observe("api", rules())
	f.Decided(t.Context(), core.Decision{Reason: core.ReasonOverLimit}, 0, 1)
	f.Decided(t.Context(), core.Decision{Allowed: true, Degraded: true, Waited: time.Minute}, 0, 1)
	f.Decided(t.Context(), core.Decision{Allowed: true, Remaining: 9, Waited: time.Second}, 1, 0)
	f.Decided(t.Context(), core.Decision{Reason: core.ReasonOverLimit, Waited: 30 * time.Millisecond}, 1, 0)
	f.Decided(t.Context(), core.Decision{Reason: core.ReasonFailed, Waited: time.Hour}, -1, 0)
	f.Queued(t.Context(), 1, 2)
	f.Stored(t.Context(), "take", 2*time.Millisecond, errors.New("down"))
	f.Reported(t.Context(), "suspected")
	var m metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range m.ScopeMetrics[0].Metrics {
		got = append(got, strings.TrimPrefix(m.Name, "floodgate.rate_limiting.")+" "+m.Unit+" "+m.Description)
	}
	want := []string{
		"degraded {request} Requests decided without the shared counters.",
		"events {event} Events of a checker around the limiter, such as a login guard.",
		"near_limit {request} Allowed requests that left a tenth of the quota or less.",
		"queued_requests {request} Requests of this process that wait for their turn now.",
		"request.time_in_queue s How long requests waited for their turn, by the result.",
		"requests {request} Requests by the limit that decided and the result.",
		"store.duration s How long operations of the store took.",
		"store.errors {operation} Operations of the store that failed.",
	}
	if slices.Sort(got); !slices.Equal(got, want) || m.ScopeMetrics[0].Scope.Name != "github.com/floodgate-go/floodgate/observe/otel" {
		t.Errorf("metrics\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	got = nil
	for _, s := range collect(t, r) {
		got = append(got, strings.TrimPrefix(s, "floodgate.rate_limiting."))
	}
	want = []string{
		"degraded limiter=api 1",
		"events event=suspected,limiter=api 1",
		"near_limit limit=slots-1m,limiter=api,rule=slots 0",
		"near_limit limit=user-1h,limiter=api,rule=user 1",
		"near_limit limit=user-1s,limiter=api,rule=user 0",
		"queued_requests limiter=api,rule=slots 2",
		"queued_requests limiter=api,rule=user 0",
		"request.time_in_queue limiter=api,result=allowed,rule=slots 1 1 [0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0]",
		"request.time_in_queue limiter=api,result=allowed,rule=user 1 60 [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0]",
		"request.time_in_queue limiter=api,result=denied,rule=slots 1 0.03 [0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0]",
		"request.time_in_queue limiter=api,result=failed,rule= 1 3600 [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1]",
		"requests limit=,limiter=api,result=bad_request,rule= 0",
		"requests limit=,limiter=api,result=canceled,rule= 0",
		"requests limit=,limiter=api,result=denied,rule= 0",
		"requests limit=,limiter=api,result=failed,rule= 1",
		"requests limit=,limiter=api,result=no_rule,rule= 0",
		"requests limit=,limiter=api,result=skipped,rule= 0",
		"requests limit=slots-1m,limiter=api,result=allowed,rule=slots 1",
		"requests limit=slots-1m,limiter=api,result=denied,rule=slots 1",
		"requests limit=user-1h,limiter=api,result=allowed,rule=user 1",
		"requests limit=user-1h,limiter=api,result=denied,rule=user 1",
		"requests limit=user-1s,limiter=api,result=allowed,rule=user 0",
		"requests limit=user-1s,limiter=api,result=denied,rule=user 0",
		"store.duration limiter=api,operation=take 1 0.002 [0 0 0 1 0 0 0 0 0 0 0 0]",
		"store.errors limiter=api,operation=take 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("series\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if got := collect(t, r); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "requests") }) {
		t.Errorf("after Close: %q", got)
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
	return stuck{}, f.err("callback")
}

// stuck is a registration that cannot end.
type stuck struct{ noop.Registration }

func (stuck) Unregister() error { return errFailing }

// If the meter returns an error, New or Close returns it.
func TestTheErrorOfTheMeter(t *testing.T) {
	for _, name := range []string{"callback", "none", "floodgate.rate_limiting.requests", "floodgate.rate_limiting.queued_requests", "floodgate.rate_limiting.store.duration"} {
		o, err := otelobserve.New(otelobserve.Config{Metrics: provider{meter: failing{name: name}}})
		if fails := name != "none"; errors.Is(err, errFailing) != fails || (o == nil) != fails || o != nil && !errors.Is(o.Close(), errFailing) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A request that is denied has an event in its span, without the key. One that is allowed has none.
func TestSpanEvents(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	observer := core.Must(otelobserve.New(otelobserve.Config{Metrics: metric.NewMeterProvider()}))
	f := observer.Observe("api", rules())
	ctx, span := tracer.Start(t.Context(), "request")
	l := core.Must(core.New(core.Config{Observer: observer, Rules: []core.Rule{{Name: "ip", Limits: []core.Limit{{Name: "ip", Window: time.Hour}}}}}))
	_, _ = l.Take(ctx, 1, core.Hit{Rule: "ip", Key: "eve"})
	f.Decided(ctx, core.Decision{Allowed: true, Cost: 1}, 0, 0)
	f.Decided(t.Context(), core.Decision{Reason: core.ReasonOverLimit}, 0, 0) // it has no span
	f.Decided(ctx, core.Decision{Reason: core.ReasonOverLimit, Cost: 2, Remaining: 1, RetryAfter: 1500 * time.Millisecond}, 0, 1)
	f.Decided(ctx, core.Decision{Reason: core.ReasonFailed, Err: errors.New("down"), Degraded: true}, -1, 0)
	f.Decided(ctx, core.Decision{Reason: core.ReasonBadRequest}, 0, 0) // the limit has allowed it
	f.Decided(ctx, core.Decision{Reason: core.ReasonOverLimit}, -1, 0) // a checker around the limiter has denied it
	f.Decided(ctx, core.Decision{Allowed: true, DryRun: true, Reason: core.ReasonOverLimit, RetryAfter: core.Never}, 1, 0)
	f.Decided(ctx, core.Decision{Allowed: true, Degraded: true, Cost: 1}, 0, 0)
	span.End()
	var got []string
	for _, e := range recorder.Ended()[0].Events() {
		got = append(got, e.Name+" "+text(attribute.NewSet(e.Attributes...)))
	}
	want := []string{
		"floodgate.decision allowed=false,cost=1,limit=ip,limiter=default,reason=over limit,remaining=0,rule=ip",
		"floodgate.decision allowed=false,cost=2,limit=user-1h,limiter=api,reason=over limit,remaining=1,retry_after=1.5,rule=user",
		"floodgate.decision allowed=false,cost=0,degraded=true,error=down,limiter=api,reason=failed",
		"floodgate.decision allowed=false,cost=0,limiter=api,reason=bad request",
		"floodgate.decision allowed=false,cost=0,limiter=api,reason=over limit",
		"floodgate.decision allowed=true,cost=0,dry_run=true,limit=slots-1m,limiter=api,reason=over limit,remaining=0,rule=slots",
		"floodgate.decision allowed=true,cost=1,degraded=true,limit=user-1s,limiter=api,reason=within limits,remaining=0,rule=user",
	}
	if !slices.Equal(got, want) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// One span with a text that is not UTF-8 makes an exporter drop all spans of its batch.
// The text of an error may quote what a client has sent, of any length.
func TestTheTextOfAnErrorOfASpan(t *testing.T) {
	long := strings.Repeat("\u00e9", 600)
	for text, want := range map[string]string{
		"bad token \xff\xfe":      "bad token \ufffd",
		long:                      long[:1024],
		"a" + long:                "a" + long[:1022],
		strings.Repeat("x", 1024): strings.Repeat("x", 1024),
	} {
		recorder := tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
		o := core.Must(otelobserve.New(otelobserve.Config{Metrics: metric.NewMeterProvider()}))
		ctx, span := tracer.Start(t.Context(), "request")
		o.Observe("api", rules()).Decided(ctx, core.Decision{Reason: core.ReasonFailed, Err: errors.New(text)}, -1, 0)
		span.End()
		attrs := attribute.NewSet(recorder.Ended()[0].Events()[0].Attributes...)
		if got, _ := attrs.Value("error"); got.AsString() != want {
			t.Errorf("%.20q: %q, want %q", text, got.AsString(), want)
		}
	}
}

func ExampleNew() {
	reader := metric.NewManualReader() // a program has an exporter
	observer, err := otelobserve.New(otelobserve.Config{Metrics: metric.NewMeterProvider(metric.WithReader(reader))})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = observer.Close() }()
	limiter := core.Must(core.New(core.Config{
		Name:     "jobs",
		Rules:    []core.Rule{{Name: "tenant", Limits: []core.Limit{core.PerHour(2)}}},
		Observer: observer,
	}))
	for range 5 {
		limiter.Allow(context.Background(), core.Hit{Rule: "tenant", Key: "42"})
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		fmt.Println(err)
		return
	}
	requests := all.ScopeMetrics[0].Metrics[0]
	for _, p := range requests.Data.(metricdata.Sum[int64]).DataPoints {
		if p.Value > 0 {
			result, _ := p.Attributes.Value("result")
			fmt.Println(requests.Name, result.AsString(), p.Value)
		}
	}
	// Unordered output:
	// floodgate.rate_limiting.requests allowed 2
	// floodgate.rate_limiting.requests denied 3
}
