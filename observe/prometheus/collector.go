// Package promobserve exports what limiters decide to Prometheus.
//
//	collector := promobserve.New()
//	prometheus.MustRegister(collector)
//	limiter, err := core.New(core.Config{Rules: rules, Observer: collector})
//
// The metrics are
//
//	floodgate_rate_limiting_requests_total{limiter, rule, limit, result}
//	floodgate_rate_limiting_near_limit_total{limiter, rule, limit}
//	floodgate_rate_limiting_degraded_total{limiter}
//	floodgate_rate_limiting_store_duration_seconds{limiter, operation}
//	floodgate_rate_limiting_store_errors_total{limiter, operation}
//	floodgate_rate_limiting_queued_requests{limiter, rule}
//	floodgate_rate_limiting_request_time_in_queue_seconds{limiter, rule, result}
//	floodgate_rate_limiting_events_total{limiter, event}
//
// The gauge queued_requests is that of this process: sum it over all instances. Only rules whose
// requests may wait have the metrics of the queue. For slots, read Held of an inflight.Limiter.
//
// The number of series depends on the configuration alone: traffic, and what clients
// send, never adds one. Their names follow those of ASP.NET Core (aspnetcore.rate_limiting.*).
// The results are the constants of package observe.
//
// It is a separate module, so that nobody else has Prometheus in go.mod.
package promobserve

import (
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/observe"
	"github.com/prometheus/client_golang/prometheus"
)

// Collector is a [core.Observer] and a [prometheus.Collector]. [New] makes it. One
// serves any number of limiters. Its methods may be called concurrently.
type Collector struct {
	*observe.Counts
}

var (
	_ core.Observer        = (*Collector)(nil)
	_ prometheus.Collector = (*Collector)(nil)
)

// New returns a collector that has counted nothing.
func New() *Collector { return &Collector{observe.NewCounts()} }

const prefix = "floodgate_rate_limiting_"

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, append([]string{"limiter"}, labels...), nil)
}

var (
	requests    = desc("requests_total", "Requests by the limit that decided and the result.", "rule", "limit", "result")
	nearLimit   = desc("near_limit_total", "Allowed requests that left a tenth of the quota or less.", "rule", "limit")
	degraded    = desc("degraded_total", "Requests decided without the shared counters.")
	storeTook   = desc("store_duration_seconds", "How long operations of the store took.", "operation")
	storeErrors = desc("store_errors_total", "Operations of the store that failed.", "operation")
	queued      = desc("queued_requests", "Requests of this process that wait for their turn now.", "rule")
	queueTook   = desc("request_time_in_queue_seconds", "How long requests waited for their turn, by the result.", "rule", "result")
	events      = desc("events_total", "Events of a checker around the limiter, such as a login guard.", "event")
)

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requests, nearLimit, degraded, storeTook, storeErrors, queued, queueTook, events} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, l := range c.Read() {
		to{ch, l.Name}.collect(&l)
	}
}

// to sends the metrics of a limiter.
type to struct {
	ch      chan<- prometheus.Metric
	limiter string
}

func (t to) collect(l *observe.LimiterCounts) {
	for r := range l.Results() {
		t.count(requests, r.Count, r.Rule, r.Limit, r.Result)
	}
	for _, n := range l.Limits {
		t.count(nearLimit, n.Near, n.Rule, n.Limit)
	}
	t.count(degraded, l.Degraded)
	for _, s := range l.Store {
		t.count(storeErrors, s.Errors, s.Operation)
		t.durations(storeTook, s.Durations, storeBounds, s.Operation)
	}
	for _, q := range l.Queues {
		if q.Rule != "" {
			t.ch <- prometheus.MustNewConstMetric(queued, prometheus.GaugeValue, float64(q.Waiting), t.limiter, q.Rule)
		}
		for _, w := range q.Waits {
			t.durations(queueTook, w.Durations, requestBounds, q.Rule, w.Result)
		}
	}
	for _, e := range l.Events {
		t.count(events, e.Count, e.Event)
	}
}

func (t to) count(d *prometheus.Desc, n uint64, labels ...string) {
	t.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{t.limiter}, labels...)...)
}

var storeBounds, requestBounds = observe.Bounds(), observe.RequestBounds()

func (t to) durations(d *prometheus.Desc, all observe.Durations, bounds []time.Duration, labels ...string) {
	below, buckets := uint64(0), map[float64]uint64{}
	for i, n := range all.Buckets {
		if below += n; i < len(bounds) {
			buckets[bounds[i].Seconds()] = below
		}
	}
	t.ch <- prometheus.MustNewConstHistogram(d, below, all.Took.Seconds(), buckets, append([]string{t.limiter}, labels...)...)
}
