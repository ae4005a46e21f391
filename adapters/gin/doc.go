// Package ginlimit limits the requests of Gin applications.
//
//	r.GET("/api", ginlimit.PerIP(100, time.Minute), api)
//
// PerIP is the one line for a start; Middleware takes a limiter with any rules,
// a login guard, or whatever else is a core.Checker. It stands before whatever
// reads the request's body. A handler reads the decision with DecisionFrom.
//
// A limiter that wants to know the outcome learns what has been written by the
// time the handlers behind it have returned. Middleware that answers later what
// handlers have left in c.Errors belongs behind the limiter, not before it.
package ginlimit
