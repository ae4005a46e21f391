// Package fiberlimit limits the requests of Fiber v2 applications.
//
//	app.Get("/api", fiberlimit.PerIP(100, time.Minute), api)
//
// PerIP is the one line for a start; Middleware takes a limiter with any rules,
// a login guard, or whatever else is a core.Checker. A handler reads the
// decision with DecisionFrom.
//
// Fiber has read the body before any handler runs, up to its BodyLimit; it is
// looked at as it came, and never inflated. Where a limiter wants to know the
// outcome, an error that a handler returns is given to the application's
// ErrorHandler by the middleware, and not returned.
//
// In app.Use and in groups, Fiber's Route is the middleware's own, such as "/":
// a limiter whose keys have the route stands on the routes themselves.
package fiberlimit
