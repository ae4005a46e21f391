// Package fiberlimit limits the requests of Fiber v2 applications.
//
//	app.Get("/api", fiberlimit.PerIP(100, time.Minute), api)
//
// PerIP is the one line for a start; Middleware takes a limiter with any rules,
// a login guard, or whatever else is a core.Checker. A handler reads the
// decision with DecisionFrom.
//
// If the application streams bodies (fiber.Config.StreamRequestBody), a limiter
// that reads the body reads all of it into memory, up to BodyLimit, and refuses
// a longer one with 400. Otherwise, Fiber has read the body before any handler runs, up to its BodyLimit; it is
// looked at as it came, and never inflated. So a client that is over its limit
// and waits for 100 Continue (Expect: 100-continue) is told to go on, sends its
// body, and is refused then. The ContinueHandler of fasthttp's server cannot
// refuse it earlier: it is given the request's header without the client's
// address, and can answer with status 417 only. Keep BodyLimit small on routes
// that anybody can reach. Where a limiter wants to know the
// outcome, an error that a handler returns is given to the application's
// ErrorHandler by the middleware, and not returned.
//
// In app.Use and in groups, Fiber's Route is the middleware's own, such as "/":
// a limiter whose keys have the route stands on the routes themselves.
package fiberlimit
