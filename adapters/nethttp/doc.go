// Package httplimit limits the requests to net/http handlers, and to routers that use
// net/http handlers, such as http.ServeMux and chi. For Gin, Echo and Fiber, use the
// packages of these frameworks.
//
//	mux.Handle("/api/", httplimit.PerIP(100, time.Minute)(api))
//
// PerIP is the shortest way to start. Middleware accepts every core.Checker: a limiter
// with any rules, a login guard or a set of policies.
//
// Mount the middleware before every middleware that reads the request's body, because a
// key function cannot read a body that was read before. If a key is the route, mount the
// middleware on the routes, because the route is not known before the router has matched.
//
// A handler reads the decision with DecisionFrom, if the Middleware has the option
// ExposeDecision.
//
// If a rule depends on the response, the handler gets a writer that records the status. It
// implements http.Flusher, http.Hijacker and io.ReaderFrom as the server's does, and has
// Unwrap for http.ResponseController. It does not implement http.Pusher.
package httplimit
