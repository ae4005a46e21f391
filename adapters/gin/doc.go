// Package ginlimit limits the requests to Gin applications.
//
//	r.GET("/api", ginlimit.PerIP(100, time.Minute), api)
//
// PerIP is the shortest way to start. Middleware accepts every core.Checker: a limiter
// with any rules, a login guard or a set of policies. A handler reads the decision with
// DecisionFrom, if the Middleware has the option ExposeDecision.
//
// Mount the middleware before every middleware that reads the request's body, because a
// key function cannot read a body that was read before.
//
// If a rule depends on the response (core.Rule.Counts and Clears, login guards), the
// limiter reads the response's status when the handlers behind the limiter have returned.
// If a middleware writes the response after these handlers, for instance from c.Errors,
// mount that middleware behind the limiter. Otherwise the limiter cannot know the status:
// it takes 400 if the handlers have called c.Error and have written nothing.
package ginlimit
