// Package echo5limit limits the requests to Echo v5 applications.
//
//	e.GET("/api", api, echo5limit.PerIP(100, time.Minute))
//
// PerIP is the shortest way to start. Middleware accepts every core.Checker: a limiter
// with any rules, a login guard or a set of policies. A handler reads the decision with
// DecisionFrom, if the Middleware has the option ExposeDecision.
//
// Mount the middleware before every middleware that reads the request's body, because a
// key function cannot read a body that was read before.
//
// If a rule depends on the response (core.Rule.Counts and Clears, login guards) and the
// handler returns an error, the middleware passes the error to the application's
// HTTPErrorHandler, so that the response is written. It then returns the error, and Echo
// calls the HTTPErrorHandler again. An HTTPErrorHandler of your own must do nothing if
// the response is committed, as Echo's does: see echo.UnwrapResponse.
//
// A middleware in e.Use that changes the request's method, such as MethodOverride, runs
// before the limiter of a route. A ShouldLimit hook of that limiter gets the changed
// method.
//
// The package is a module of its own, so that a program with another framework does not
// get Echo v5's requirements:
//
//	go get github.com/floodgate-go/floodgate/adapters/echo5
package echo5limit
