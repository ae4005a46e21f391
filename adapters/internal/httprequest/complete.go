package httprequest

import (
	"bufio"
	"net"
	"net/http"
)

// complete adds the methods Flush and Hijack to a response writer if only a writer that it
// wraps has them. Without them, http.ResponseController would find the wrapped writer with
// Unwrap, and a Watcher would not see the call.
func complete(w http.ResponseWriter) http.ResponseWriter {
	_, flushes := w.(http.Flusher)
	_, hijacks := w.(http.Hijacker)
	canFlush, canHijack := flushes || below[http.Flusher](w), hijacks || below[http.Hijacker](w)
	if canFlush == flushes && canHijack == hijacks {
		return w
	}
	c := controlled{w}
	switch {
	case canFlush && canHijack:
		return struct {
			controlled
			flusher
			hijacker
		}{c, flusher{w}, hijacker{w}}
	case canFlush:
		return struct {
			controlled
			flusher
		}{c, flusher{w}}
	default:
		return struct {
			controlled
			hijacker
		}{c, hijacker{w}}
	}
}

// below reports whether a writer that w wraps is a T.
func below[T any](w http.ResponseWriter) bool {
	for {
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = u.Unwrap()
		if _, ok := w.(T); ok {
			return true
		}
	}
}

type controlled struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (c controlled) Unwrap() http.ResponseWriter { return c.ResponseWriter }

type flusher struct{ w http.ResponseWriter }

// Flush implements http.Flusher.
func (f flusher) Flush() { _ = f.FlushError() }

// FlushError is for http.ResponseController.
func (f flusher) FlushError() error { return http.NewResponseController(f.w).Flush() }

type hijacker struct{ w http.ResponseWriter }

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.w).Hijack()
}
