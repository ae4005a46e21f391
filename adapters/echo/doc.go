// Package echolimit limits the requests of Echo v4 applications.
//
//	e.GET("/api", api, echolimit.PerIP(100, time.Minute))
//
// PerIP is the shortest way to start. Middleware takes a limiter with any rules,
// a login guard, a set of policies or any other core.Checker. A handler reads the
// decision with DecisionFrom.
//
// Mount the middleware before every middleware that reads the request's body.
//
// If a rule depends on the response (core.Rule.Counts and Clears, login guards),
// the middleware gives an error that the handler returns to the application's
// HTTPErrorHandler, and does not return it.
//
// A middleware in e.Use that changes the request's method, such as MethodOverride,
// runs before the limiter of a route. A ShouldLimit hook of that limiter gets the
// changed method.
package echolimit
