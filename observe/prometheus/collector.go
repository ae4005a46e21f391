package promobserve

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/observe"
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
	events      = desc("events_total", "Events of a checker around the limiter, such as a login guard.", "event")
)

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requests, nearLimit, degraded, storeTook, storeErrors, events} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	bounds := observe.Bounds()
	for _, l := range c.Read() {
		count := func(d *prometheus.Desc, n uint64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{l.Name}, labels...)...)
		}
		for r := range l.Results() {
			count(requests, r.Count, r.Rule, r.Limit, r.Result)
		}
		for _, n := range l.Limits {
			if !n.Shadow {
				count(nearLimit, n.Near, n.Rule, n.Limit)
			}
		}
		count(degraded, l.Degraded)
		for _, s := range l.Store {
			count(storeErrors, s.Errors, s.Operation)
			below, buckets := uint64(0), map[float64]uint64{}
			for i, n := range s.Buckets {
				if below += n; i < len(bounds) {
					buckets[bounds[i].Seconds()] = below
				}
			}
			ch <- prometheus.MustNewConstHistogram(storeTook, below, s.Took.Seconds(), buckets, l.Name, s.Operation)
		}
		for _, e := range l.Events {
			count(events, e.Count, e.Event)
		}
	}
}
