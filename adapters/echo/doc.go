// Package echolimit limits the requests of Echo v4 applications.
//
//	e.GET("/api", api, echolimit.PerIP(100, time.Minute))
//
// PerIP is the one line for a start; Middleware takes a limiter with any rules,
// a login guard, or whatever else is a core.Checker. It stands before whatever
// reads the request's body. A handler reads the decision with DecisionFrom.
//
// Where a limiter wants to know the outcome, an error that a handler returns is
// given to the application's HTTPErrorHandler by the middleware. Middleware that
// changes the request's method in e.Use (MethodOverride) runs before a route's
// limiter: a ShouldLimit hook then sees the changed method, not the client's.
package echolimit
