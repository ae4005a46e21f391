// Package otelobserve exports what limiters decide to OpenTelemetry: as metrics, and as
// events of the span of the request.
//
//	observer, err := otelobserve.New(otelobserve.Config{})
//	limiter, err := core.New(core.Config{Rules: rules, Observer: observer})
//
// The metrics, with their attributes:
//
//	floodgate.rate_limiting.requests                counter, {request}          limiter, rule, limit, result
//	floodgate.rate_limiting.near_limit              counter, {request}          limiter, rule, limit
//	floodgate.rate_limiting.degraded                counter, {request}          limiter
//	floodgate.rate_limiting.queued_requests         up-down counter, {request}  limiter, rule
//	floodgate.rate_limiting.request.time_in_queue   histogram, s                limiter, rule, result
//	floodgate.rate_limiting.store.duration          histogram, s                limiter, operation
//	floodgate.rate_limiting.store.errors            counter, {operation}        limiter, operation
//	floodgate.rate_limiting.events                  counter, {event}            limiter, event
//
// The names follow ASP.NET Core's metrics (aspnetcore.rate_limiting.requests and so on).
// Differences:
//
//   - There are no metrics of leases: Held of an inflight.Limiter is the number of slots.
//   - The results are "allowed" and "canceled" in place of "acquired" and
//     "request_canceled". A client that hung up in line is "denied".
//   - The durations have two more buckets, of 30 and 60 seconds.
//
// The attributes have short names. A Prometheus behind OpenTelemetry thus has the names of
// package promobserve, and one dashboard reads both. The results are the constants of package
// observe. The number of series depends on the configuration alone.
//
// It is a separate module, so that nobody else has OpenTelemetry in go.mod. It needs the API only;
// the program brings the SDK.
package otelobserve
