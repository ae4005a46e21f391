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
//	floodgate_rate_limiting_active_request_leases{limiter, rule}
//	floodgate_rate_limiting_request_lease_duration_seconds{limiter, rule}
//	floodgate_rate_limiting_queued_requests{limiter, rule}
//	floodgate_rate_limiting_request_time_in_queue_seconds{limiter, rule, result}
//	floodgate_rate_limiting_events_total{limiter, event}
//
// The two gauges are those of this process: sum them over all instances. They are 0
// again when all requests have ended. Only rules with a limit of core.Leases have the
// metrics of leases, and only rules whose requests may wait have those of the queue.
//
// The number of series depends on the configuration alone: traffic, and what clients
// send, never adds one. Their names follow those of ASP.NET Core (aspnetcore.rate_limiting.*).
// The results are the constants of package observe.
//
// The module is one of its own, so that nobody else has Prometheus in go.mod.
package promobserve
