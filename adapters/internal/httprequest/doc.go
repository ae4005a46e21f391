// Package httprequest has the code that the adapters for net/http, Gin and Echo share: a
// core.Request around an http.Request, the response to a denied request, and a response
// writer that records the status.
package httprequest
