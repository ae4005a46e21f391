// Package fiber3limit limits the requests to Fiber v3 applications.
//
//	app.Get("/api", fiber3limit.PerIP(100, time.Minute), api)
//
// PerIP is the shortest way to start. Middleware accepts every core.Checker: a limiter
// with any rules, a login guard or a set of policies. A handler reads the decision with
// DecisionFrom, if the Middleware has the option ExposeDecision.
//
// If a key is the route, mount the middleware on the routes. In app.Use and in
// groups, Fiber's Route is the route of the middleware, such as "/".
//
// If a rule depends on the response (core.Rule.Counts and Clears, login guards) and the
// handler returns an error, the middleware passes the error to the application's
// ErrorHandler, so that the response is written. It then returns nil.
//
// # Bodies
//
// Fiber reads the body, up to its BodyLimit, before any handler runs. A limiter does not
// decompress the body. If a client waits for 100 Continue, Fiber tells it to send the
// body, and the limiter can deny the request only after that. fasthttp's ContinueHandler
// cannot deny it earlier: it gets the request's header without the client's address, and
// can answer with status 417 only. Keep BodyLimit small on routes that anybody can reach.
//
// If the application streams bodies (fiber.Config.StreamRequestBody), a limiter that needs
// the body reads all of it into memory, up to BodyLimit, and refuses a longer body with
// 400.
//
// If a handler of an allowed request leaves a streamed body unread, fasthttp reads the rest of
// the body as the next request of the connection. A client can thus hide a request in a body, and
// a proxy before the application sends other clients the wrong responses. A handler that does not
// need the body reads it to its end, or calls c.RequestCtx().SetConnectionClose(). A response that this
// package makes for a denied request always closes such a connection.
//
// # Timeouts
//
// Fiber's middleware for timeouts runs the handlers behind it in a goroutine, which goes on
// after the timeout. Mount a limiter before it. A limiter learns the answer that the client
// gets, and the handlers can still read their decision.
//
// # Malformed requests
//
// Fiber v3 runs the middlewares of app.Use for a request that it cannot read, such as one
// with a header that is too long, and then answers with its own status. A limiter there
// counts such a request. Its denial is not seen.
//
// The package is a module of its own, so that a program with another framework does not
// get Fiber v3's requirements:
//
//	go get github.com/floodgate-go/floodgate/adapters/fiber3
package fiber3limit
