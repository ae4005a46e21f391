// Package httprequest is what the adapters share whose frameworks are made of
// net/http: the request as the core sees it, with a body that stays whole, and a
// response writer that learns the status.
package httprequest
