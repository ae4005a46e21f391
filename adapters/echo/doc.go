// Package echolimit limits the requests of Echo v4 applications.
//
//	e.GET("/api", api, echolimit.PerIP(100, time.Minute))
//
// PerIP is the one line for a start; Middleware takes a limiter with any rules,
// a login guard, or whatever else is a core.Checker. It stands before whatever
// reads the request's body. A handler reads the decision with DecisionFrom.
package echolimit
