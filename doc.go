// Package floodgate is the front door of a rate limiting library. It has no code:
// import the packages below it.
//
// To limit a route of net/http, chi, Gin, Echo, Fiber, gRPC or Connect, import the
// adapter below adapters and call its PerIP. To choose keys, limits and a store,
// build a Limiter with package core and give it to the adapter's Middleware.
//
//   - core decides: Limiter, Rule, Limit, Store.
//   - keyfuncs has the keys: client address, user, header, cookie, field of a body.
//   - adapters/nethttp and its siblings carry decisions to a framework.
//   - stores/redis and stores/memcached share counters among instances;
//     stores/resilient decides while they are gone.
//   - inflight limits how many requests run at once.
//   - login protects a login form.
//   - policy reads limits from a file.
//   - httpclient limits the requests that a program sends.
//   - observe and live show what is decided.
//
// To stop floods before they reach your program, use your proxy or CDN instead.
package floodgate
