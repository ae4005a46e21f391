// Package ginlimit limits the requests of Gin applications.
//
//	r.GET("/api", ginlimit.PerIP(100, time.Minute), api)
//
// PerIP is the shortest way to start. Middleware takes a limiter with any rules,
// a login guard, a set of policies or any other core.Checker. A handler reads the
// decision with DecisionFrom.
//
// Mount the middleware before every middleware that reads the request's body.
//
// If a rule depends on the response (core.Rule.Counts and Clears, login guards),
// the limiter looks at it when the handlers behind it have returned. A middleware
// that writes the response after that, from c.Errors for instance, must be mounted
// behind the limiter.
package ginlimit
