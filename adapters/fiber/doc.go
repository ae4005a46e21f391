// Package fiberlimit limits the requests of Fiber v2 applications.
//
//	app.Get("/api", fiberlimit.PerIP(100, time.Minute), api)
//
// PerIP is the shortest way to start. Middleware takes a limiter with any rules,
// a login guard, a set of policies or any other core.Checker. A handler reads the
// decision with DecisionFrom.
//
// If a key is the route, mount the middleware on the routes. In app.Use and in
// groups, Fiber's Route is the route of the middleware, such as "/".
//
// If a rule depends on the response (core.Rule.Counts and Clears, login guards),
// the middleware gives an error that the handler returns to the application's
// ErrorHandler, and does not return it.
//
// # Bodies
//
// Fiber reads the body, up to its BodyLimit, before any handler runs. A limiter
// does not decompress it. A client that waits for 100 Continue is told to send its
// body, and is denied only then, even if it is over its limit: the ContinueHandler
// of fasthttp's server gets the request's header without the client's address, and
// can answer with status 417 only. Keep BodyLimit small on routes that anybody can
// reach.
//
// If the application streams bodies (fiber.Config.StreamRequestBody), a limiter
// that needs the body reads all of it into memory, up to BodyLimit, and refuses a
// longer body with 400.
package fiberlimit
