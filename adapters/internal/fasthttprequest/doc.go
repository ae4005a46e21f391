// Package fasthttprequest has the code that the adapters for the majors of Fiber share: a
// core.Request around a fasthttp.RequestCtx, the middleware, and the response to a denied
// request. It imports fasthttp and no Fiber: an adapter describes its major as a [Major].
package fasthttprequest
