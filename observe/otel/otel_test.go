package otelobserve_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/racetest"
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

func rules() []core.Rule {
	return []core.Rule{{Name: "ip", Limits: []core.Limit{{Name: "ip", Quota: 2, Window: time.Hour}}}}
}

func TestMetrics(t *testing.T) {
	r := metric.NewManualReader()
	o := core.Must(otelobserve.New(otelobserve.Config{Metrics: metric.NewMeterProvider(metric.WithReader(r))}))
	l := core.Must(core.New(core.Config{Name: "api", Rules: rules(), Observer: o, Log: slog.New(slog.DiscardHandler)}))
	for range 5 {
		l.Allow(t.Context(), core.Hit{Rule: "ip", Key: "k"})
	}
	l.Allow(t.Context(), core.Hit{Rule: "none"})
	l.Report(t.Context(), "suspected")
	f := o.Observe("api", rules())
	f.Stored(t.Context(), "take", 2*time.Millisecond, errors.New("down"))
	f.Decided(t.Context(), core.Observation{Rule: -1, Reason: core.ReasonSkipped, Degraded: true})
	f = o.Observe("export", []core.Rule{{Name: "slots", MaxWait: time.Second, Limits: []core.Limit{{Name: "slots"}}}})
	f.Queued(t.Context(), 0, 2)
	f.Decided(t.Context(), core.Observation{Allowed: true, Capacity: 9, Remaining: 9, Waited: 30 * time.Millisecond})
	f.Decided(t.Context(), core.Observation{Reason: core.ReasonOverLimit, Waited: 30 * time.Millisecond})
	f.Decided(t.Context(), core.Observation{Rule: -1, Reason: core.ReasonFailed, Waited: time.Hour})
	want := []string{
		"floodgate.rate_limiting.degraded limiter=export 0",
		"floodgate.rate_limiting.degraded limiter=api 1",
		"floodgate.rate_limiting.events event=suspected,limiter=api 1",
		"floodgate.rate_limiting.near_limit limit=slots,limiter=export,rule=slots 0",
		"floodgate.rate_limiting.near_limit limit=ip,limiter=api,rule=ip 1",
		"floodgate.rate_limiting.queued_requests limiter=export,rule=slots 2",
		"floodgate.rate_limiting.request.time_in_queue limiter=export,result=allowed,rule=slots 1 0.03 [0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0]",
		"floodgate.rate_limiting.request.time_in_queue limiter=export,result=denied,rule=slots 1 0.03 [0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0]",
		"floodgate.rate_limiting.request.time_in_queue limiter=export,result=failed,rule= 1 3600 [0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1]",
		"floodgate.rate_limiting.requests limit=,limiter=export,result=bad_request,rule= 0",
		"floodgate.rate_limiting.requests limit=,limiter=export,result=canceled,rule= 0",
		"floodgate.rate_limiting.requests limit=,limiter=export,result=failed,rule= 1",
		"floodgate.rate_limiting.requests limit=,limiter=export,result=no_rule,rule= 0",
		"floodgate.rate_limiting.requests limit=,limiter=export,result=denied,rule= 0",
		"floodgate.rate_limiting.requests limit=,limiter=export,result=skipped,rule= 0",
		"floodgate.rate_limiting.requests limit=slots,limiter=export,result=allowed,rule=slots 1",
		"floodgate.rate_limiting.requests limit=slots,limiter=export,result=denied,rule=slots 1",
		"floodgate.rate_limiting.requests limit=,limiter=api,result=bad_request,rule= 0",
		"floodgate.rate_limiting.requests limit=,limiter=api,result=canceled,rule= 0",
		"floodgate.rate_limiting.requests limit=,limiter=api,result=failed,rule= 1",
		"floodgate.rate_limiting.requests limit=,limiter=api,result=no_rule,rule= 0",
		"floodgate.rate_limiting.requests limit=,limiter=api,result=denied,rule= 0",
		"floodgate.rate_limiting.requests limit=,limiter=api,result=skipped,rule= 1",
		"floodgate.rate_limiting.requests limit=ip,limiter=api,result=allowed,rule=ip 2",
		"floodgate.rate_limiting.requests limit=ip,limiter=api,result=denied,rule=ip 3",
		"floodgate.rate_limiting.store.duration limiter=api,operation=take 1 0.002 [0 0 0 1 0 0 0 0 0 0 0 0]",
		"floodgate.rate_limiting.store.errors limiter=api,operation=take 1",
	}
	slices.Sort(want)
	if got := collect(t, r); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i := range 5000 {
		l.Allow(t.Context(), core.Hit{Rule: "ip", Key: fmt.Sprint(i)})
	}
	if got := collect(t, r); len(got) != len(want) {
		t.Errorf("%d series after 5,000 clients, %d before", len(got), len(want))
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if got := collect(t, r); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "requests") || strings.Contains(s, "leases") }) {
		t.Errorf("after Close: %q", got)
	}
}

// A request that is denied has an event in its span, without the key. One that is allowed has none.
func TestSpanEvents(t *testing.T) {
	for _, without := range []bool{false, true} {
		recorder := tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
		o := core.Must(otelobserve.New(otelobserve.Config{Metrics: metric.NewMeterProvider(), NoSpanEvents: without}))
		f := o.Observe("api", rules())
		ctx, span := tracer.Start(t.Context(), "request")
		f.Decided(ctx, core.Observation{Allowed: true, Rule: 0, Cost: 1})
		f.Decided(t.Context(), core.Observation{Reason: core.ReasonOverLimit, Rule: 0}) // it has no span
		f.Decided(ctx, core.Observation{Reason: core.ReasonOverLimit, Rule: 0, Cost: 2, Remaining: 1, RetryAfter: 1500 * time.Millisecond, Key: "eve"})
		f.Decided(ctx, core.Observation{Reason: core.ReasonFailed, Rule: -1, Err: errors.New("down"), Degraded: true})
		f.Decided(ctx, core.Observation{Allowed: true, DryRun: true, Reason: core.ReasonOverLimit, RetryAfter: core.Never})
		f.Decided(ctx, core.Observation{Allowed: true, Degraded: true, Cost: 1})
		span.End()
		var got []string
		for _, e := range recorder.Ended()[0].Events() {
			got = append(got, e.Name+" "+text(attribute.NewSet(e.Attributes...)))
		}
		want := []string{
			"floodgate.decision allowed=false,cost=2,limit=ip,limiter=api,reason=over limit,remaining=1,retry_after=1.5,rule=ip",
			"floodgate.decision allowed=false,cost=0,degraded=true,error=down,limiter=api,reason=failed",
			"floodgate.decision allowed=true,cost=0,dry_run=true,limit=ip,limiter=api,reason=over limit,remaining=0,rule=ip",
			"floodgate.decision allowed=true,cost=1,degraded=true,limit=ip,limiter=api,reason=within limits,remaining=0,rule=ip",
		}
		if without {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
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
		o.Observe("api", rules()).Decided(ctx, core.Observation{Reason: core.ReasonFailed, Rule: -1, Err: errors.New(text)})
		span.End()
		attrs := attribute.NewSet(recorder.Ended()[0].Events()[0].Attributes...)
		if got, _ := attrs.Value("error"); got.AsString() != want {
			t.Errorf("%.20q: %q, want %q", text, got.AsString(), want)
		}
	}
}

func TestDecisionsAllocateNothing(t *testing.T) {
	o := core.Must(otelobserve.New(otelobserve.Config{Metrics: metric.NewMeterProvider()}))
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Limits: []core.Limit{core.PerHour(2_000_000)}}}, Observer: o}))
	ctx, hit := context.Background(), core.Hit{Rule: "default", Key: "k"}
	if n := testing.AllocsPerRun(1000, func() { l.Allow(ctx, hit) }); n != 0 && !racetest.Enabled {
		t.Errorf("%v allocations", n)
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
