package promobserve_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/observe"
	promobserve "github.com/floodgate-go/floodgate/observe/prometheus"
)

func rules() []core.Rule {
	return []core.Rule{{Name: "ip", Limits: []core.Limit{{Name: "ip-1h", Quota: 2, Window: time.Hour}}}}
}

const requests = `
# HELP floodgate_rate_limiting_requests_total Requests by the limit that decided and the result.
# TYPE floodgate_rate_limiting_requests_total counter
`

func TestCollector(t *testing.T) {
	c := promobserve.New()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	l := core.Must(core.New(core.Config{Name: "api", Rules: rules(), Observer: c}))
	for range 5 {
		l.Allow(t.Context(), core.Hit{Rule: "ip", Key: "k"})
	}
	l.Report(t.Context(), "suspected")
	l.Report(t.Context(), "locked out")
	f := c.Observe("tried", rules())
	f.Decided(t.Context(), core.Decision{Allowed: true, DryRun: true, Reason: core.ReasonOverLimit}, 0, 0)
	f.Decided(t.Context(), core.Decision{Reason: core.ReasonFailed, Degraded: true}, -1, 0)
	f.Stored(t.Context(), "take", 2*time.Millisecond, nil)
	f.Stored(t.Context(), "take", time.Minute, errors.New("down"))
	f.Stored(t.Context(), "peek", 1500*time.Microsecond, nil)
	f = c.Observe("export", []core.Rule{{Name: "slots", MaxWait: time.Second, Limits: []core.Limit{{Name: "slots"}}}})
	f.Queued(t.Context(), 0, 2)
	f.Decided(t.Context(), core.Decision{Allowed: true, Remaining: 9, Waited: 30 * time.Millisecond}, 0, 0)
	f.Decided(t.Context(), core.Decision{Reason: core.ReasonFailed, Waited: time.Hour}, -1, 0)
	want := requests
	for _, row := range []string{
		`api,ip,ip-1h,allowed 2`, `api,ip,ip-1h,denied 3`, `api,,,skipped 0`, `api,,,no_rule 0`, `api,,,bad_request 0`, `api,,,failed 0`, `api,,,canceled 0`, `api,,,denied 0`,
		`tried,ip,ip-1h,allowed 0`, `tried,ip,ip-1h,denied 0`, `tried,ip,ip-1h,dry_run 1`,
		`export,slots,slots,allowed 1`, `export,slots,slots,denied 0`, `export,,,skipped 0`, `export,,,no_rule 0`, `export,,,bad_request 0`, `export,,,failed 1`, `export,,,canceled 0`, `export,,,denied 0`,
		`tried,,,skipped 0`, `tried,,,no_rule 0`, `tried,,,bad_request 0`, `tried,,,failed 1`, `tried,,,canceled 0`, `tried,,,denied 0`,
	} {
		labels, n, _ := strings.Cut(row, " ")
		p := strings.Split(labels, ",")
		want += fmt.Sprintf("floodgate_rate_limiting_requests_total{limit=%q,limiter=%q,result=%q,rule=%q} %s\n", p[2], p[0], p[3], p[1], n)
	}
	want += `
# HELP floodgate_rate_limiting_near_limit_total Allowed requests that left a tenth of the quota or less.
# TYPE floodgate_rate_limiting_near_limit_total counter
floodgate_rate_limiting_near_limit_total{limit="ip-1h",limiter="api",rule="ip"} 1
floodgate_rate_limiting_near_limit_total{limit="slots",limiter="export",rule="slots"} 0
floodgate_rate_limiting_near_limit_total{limit="ip-1h",limiter="tried",rule="ip"} 0
# HELP floodgate_rate_limiting_degraded_total Requests decided without the shared counters.
# TYPE floodgate_rate_limiting_degraded_total counter
floodgate_rate_limiting_degraded_total{limiter="api"} 0
floodgate_rate_limiting_degraded_total{limiter="export"} 0
floodgate_rate_limiting_degraded_total{limiter="tried"} 1
# HELP floodgate_rate_limiting_events_total Events of a checker around the limiter, such as a login guard.
# TYPE floodgate_rate_limiting_events_total counter
floodgate_rate_limiting_events_total{event="locked out",limiter="api"} 1
floodgate_rate_limiting_events_total{event="suspected",limiter="api"} 1
# HELP floodgate_rate_limiting_store_errors_total Operations of the store that failed.
# TYPE floodgate_rate_limiting_store_errors_total counter
floodgate_rate_limiting_store_errors_total{limiter="tried",operation="peek"} 0
floodgate_rate_limiting_store_errors_total{limiter="tried",operation="take"} 1
# HELP floodgate_rate_limiting_store_duration_seconds How long operations of the store took.
# TYPE floodgate_rate_limiting_store_duration_seconds histogram
`
	want += histogram("floodgate_rate_limiting_store_duration_seconds", `limiter="tried",operation="peek"`, observe.Bounds(), 1500*time.Microsecond) +
		histogram("floodgate_rate_limiting_store_duration_seconds", `limiter="tried",operation="take"`, observe.Bounds(), 2*time.Millisecond, time.Minute)
	want += `
# HELP floodgate_rate_limiting_queued_requests Requests of this process that wait for their turn now.
# TYPE floodgate_rate_limiting_queued_requests gauge
floodgate_rate_limiting_queued_requests{limiter="export",rule="slots"} 2
# HELP floodgate_rate_limiting_request_time_in_queue_seconds How long requests waited for their turn, by the result.
# TYPE floodgate_rate_limiting_request_time_in_queue_seconds histogram
` + histogram("floodgate_rate_limiting_request_time_in_queue_seconds", `limiter="export",result="allowed",rule="slots"`, observe.RequestBounds(), 30*time.Millisecond) +
		histogram("floodgate_rate_limiting_request_time_in_queue_seconds", `limiter="export",result="failed",rule=""`, observe.RequestBounds(), time.Hour)
	if err := testutil.GatherAndCompare(r, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	described := make(chan *prometheus.Desc, 100)
	if c.Describe(described); len(described) != 8 {
		t.Errorf("%d metrics are described, want 8", len(described))
	}
	if problems, err := testutil.GatherAndLint(r); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %+v, %v", problems, err)
	}
}

// histogram is the text of a histogram of these durations.
func histogram(name, labels string, bounds []time.Duration, took ...time.Duration) (text string) {
	for _, b := range bounds {
		n := 0
		for _, d := range took {
			if d <= b {
				n++
			}
		}
		text += fmt.Sprintf("%s_bucket{%s,le=%q} %d\n", name, labels, strconv.FormatFloat(b.Seconds(), 'g', -1, 64), n)
	}
	sum := time.Duration(0)
	for _, d := range took {
		sum += d
	}
	return text + fmt.Sprintf("%s_bucket{%s,le=\"+Inf\"} %d\n%s_sum{%s} %v\n%s_count{%s} %d\n", name, labels, len(took), name, labels, sum.Seconds(), name, labels, len(took))
}

func ExampleNew() {
	collector := promobserve.New()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	limiter := core.Must(core.New(core.Config{
		Name:     "jobs",
		Rules:    []core.Rule{{Name: "tenant", Limits: []core.Limit{core.PerHour(2)}}},
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
	// Output: floodgate_rate_limiting_requests_total 8 series
}
