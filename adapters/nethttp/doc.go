// Package httplimit limits the requests of net/http handlers, and of every
// router that is made of them (http.ServeMux, chi).
//
//	mux.Handle("/api/", httplimit.PerIP(100, time.Minute)(api))
//
// The middleware stands before whatever reads the request's body: a key
// function that wants a field of it can only see what is still there. Keyed by
// the route, it stands inside the router.
//
// PerIP is the one line for a start; Middleware takes a limiter with any rules,
// a login guard, or whatever else is a core.Checker. A handler can read the
// decision with DecisionFrom.
package httplimit
