package promobserve_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/floodgate-go/floodgate/core"
	promobserve "github.com/floodgate-go/floodgate/observe/prometheus"
)

func rules(shadow bool) []core.Rule {
	return []core.Rule{{Name: "ip", Key: core.TakeOnly, Shadow: shadow, Limits: []core.Limit{{Name: "ip", Quota: 2, Window: time.Hour}}}}
}

const requests = `
# HELP floodgate_rate_limiting_requests_total Requests by the limit that decided and the result.
# TYPE floodgate_rate_limiting_requests_total counter
`

func TestCollector(t *testing.T) {
	c := promobserve.New()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	l := core.Must(core.New(core.Config{Name: "api", Rules: rules(false), Observer: c}))
	for range 5 {
		l.Allow(t.Context(), core.Hit{Rule: "ip", Key: "k"})
	}
	l.Report(t.Context(), "suspected")
	f := c.Observe("shadowed", rules(true))
	f.Decided(t.Context(), core.Observation{Shadow: true, Reason: core.ReasonOverLimit})
	f.Decided(t.Context(), core.Observation{Rule: -1, Reason: core.ReasonFailed, Degraded: true})
	f.Stored(t.Context(), "take", 2*time.Millisecond, nil)
	f.Stored(t.Context(), "take", time.Minute, errors.New("down"))
	want := requests
	for _, row := range []string{
		`api,ip,ip,allowed 2`, `api,ip,ip,denied 3`, `api,,,skipped 0`, `api,,,no_rule 0`, `api,,,bad_request 0`, `api,,,failed 0`, `api,,,refused 0`,
		`shadowed,ip,ip,shadow_allowed 0`, `shadowed,ip,ip,shadow_denied 1`,
		`shadowed,,,skipped 0`, `shadowed,,,no_rule 0`, `shadowed,,,bad_request 0`, `shadowed,,,failed 1`, `shadowed,,,refused 0`,
	} {
		labels, n, _ := strings.Cut(row, " ")
		p := strings.Split(labels, ",")
		want += fmt.Sprintf("floodgate_rate_limiting_requests_total{limit=%q,limiter=%q,result=%q,rule=%q} %s\n", p[2], p[0], p[3], p[1], n)
	}
	want += `
# HELP floodgate_rate_limiting_near_limit_total Allowed requests that left a tenth of the quota or less.
# TYPE floodgate_rate_limiting_near_limit_total counter
floodgate_rate_limiting_near_limit_total{limit="ip",limiter="api",rule="ip"} 1
# HELP floodgate_rate_limiting_degraded_total Requests decided without the shared counters.
# TYPE floodgate_rate_limiting_degraded_total counter
floodgate_rate_limiting_degraded_total{limiter="api"} 0
floodgate_rate_limiting_degraded_total{limiter="shadowed"} 1
# HELP floodgate_rate_limiting_events_total Events of a checker around the limiter, such as a login guard.
# TYPE floodgate_rate_limiting_events_total counter
floodgate_rate_limiting_events_total{event="suspected",limiter="api"} 1
# HELP floodgate_rate_limiting_store_errors_total Operations of the store that failed.
# TYPE floodgate_rate_limiting_store_errors_total counter
floodgate_rate_limiting_store_errors_total{limiter="shadowed",operation="take"} 1
# HELP floodgate_rate_limiting_store_duration_seconds How long operations of the store took.
# TYPE floodgate_rate_limiting_store_duration_seconds histogram
`
	for i, le := range []string{"0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "1", "+Inf"} {
		n := 0
		if i > 2 {
			n = 1
		}
		if le == "+Inf" {
			n = 2
		}
		want += fmt.Sprintf("floodgate_rate_limiting_store_duration_seconds_bucket{limiter=\"shadowed\",operation=\"take\",le=%q} %d\n", le, n)
	}
	want += "floodgate_rate_limiting_store_duration_seconds_sum{limiter=\"shadowed\",operation=\"take\"} 60.002\n" +
		"floodgate_rate_limiting_store_duration_seconds_count{limiter=\"shadowed\",operation=\"take\"} 2\n"
	if err := testutil.GatherAndCompare(r, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(r); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %+v, %v", problems, err)
	}
}

// A million clients add no series.
func TestSeriesDoNotGrowWithTraffic(t *testing.T) {
	c := promobserve.New()
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: core.TakeOnly, Limits: []core.Limit{core.PerHour(2)}}}, Observer: c}))
	l.Allow(t.Context(), core.Hit{Rule: "default", Key: "first"})
	before := testutil.CollectAndCount(c)
	for i := range 10_000 {
		l.Allow(t.Context(), core.Hit{Rule: "default", Key: fmt.Sprint(i % 5000)})
		l.Allow(t.Context(), core.Hit{Rule: fmt.Sprint(i), Key: "k"})
	}
	if after := testutil.CollectAndCount(c); after != before {
		t.Errorf("%d series, %d before", after, before)
	}
}

func ExampleNew() {
	collector := promobserve.New()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	limiter := core.Must(core.New(core.Config{
		Name:     "jobs",
		Rules:    []core.Rule{{Name: "tenant", Key: core.TakeOnly, Limits: []core.Limit{core.PerHour(2)}}},
		Observer: collector,
	}))
	for range 5 {
		limiter.Allow(context.Background(), core.Hit{Rule: "tenant", Key: "42"})
	}
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if f.GetName() == "floodgate_rate_limiting_requests_total" {
			fmt.Println(f.GetName(), len(f.GetMetric()), "series")
		}
	}
	// Output: floodgate_rate_limiting_requests_total 7 series
}
