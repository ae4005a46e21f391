// Package httplimit limits the requests of net/http handlers, and of routers that
// are made of them, such as http.ServeMux and chi.
//
//	mux.Handle("/api/", httplimit.PerIP(100, time.Minute)(api))
//
// PerIP is the shortest way to start. Middleware takes a limiter with any rules,
// a login guard, a set of policies or any other core.Checker. For Gin, Echo and
// Fiber, use the packages for these frameworks.
//
// Mount the middleware before every middleware that reads the request's body: a
// key function cannot read what another middleware has read. If a key is the
// route, mount it on the routes, because no route is known before the router.
//
// A handler reads the decision with DecisionFrom.
package httplimit
