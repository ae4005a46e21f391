package keyfuncs

import (
	"log/slog"
	"math/rand/v2"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
)

// forwardedHeaders are the headers in which proxies write a client's address.
var forwardedHeaders = []string{
	"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Cf-Connecting-Ip", "True-Client-Ip", "Fastly-Client-Ip",
	"Fly-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Azure-Clientip", "X-Appengine-Remote-Addr",
}

// unlisted finds a proxy that is not listed. To save time, it looks at the headers of the
// first requests and then of a random part of the requests. It may be used concurrently.
type unlisted struct {
	said   atomic.Bool
	looked atomic.Uint32
}

const (
	firstLooks = 64
	lookEvery  = 64 // it looks at one in lookEvery later requests on average
)

// due reports whether to look at a request.
func (u *unlisted) due() bool {
	switch {
	case u.said.Load():
		return false
	case u.looked.Load() < firstLooks:
		u.looked.Add(1)
		return true
	default:
		return rand.Uint32()%lookEvery == 0 //nolint:gosec // nobody gains by guessing it
	}
}

// ignore is called for a request whose peer is not listed as a proxy. If the request has
// a header in which proxies write addresses, ignore writes one line to the log. The line
// contains nothing that was sent, because a client may have made the header up.
func (c *clientIP) ignore(r core.Request) {
	if !c.unlisted.due() {
		return
	}
	names := forwardedHeaders
	if c.header != "" {
		names = []string{c.header}
	}
	for _, name := range names {
		if len(r.HeaderValues(name)) == 0 || !c.unlisted.said.CompareAndSwap(false, true) {
			continue
		}
		requestlog.Of(r).Warn("keyfuncs: ClientIP ignores a header in which proxies write the client's address: the peer is not listed as a proxy. "+
			"If the peer is a proxy of yours, every client behind the proxy shares one limit: write keyfuncs.Behind with the header and the proxy's address. "+
			"If the peer is not a proxy, a client has made the header up", slog.String("header", name))
		return
	}
}

// withoutPort is called for a request whose peer has an address without a port. It writes
// one line to the log, and keeps ignore from writing one that would not be true.
func (c *clientIP) withoutPort(r core.Request) {
	if !c.portless.CompareAndSwap(false, true) {
		return
	}
	c.unlisted.said.Store(true)
	requestlog.Of(r).Warn("keyfuncs: ClientIP found an address without a port in RemoteAddr: it is not the connection's. A middleware before the limiter, " +
		"such as RealIP of chi or go-pkgz/rest, has written a header into it, so that a client can choose its key. " +
		"Mount the limiter before that middleware, and list your proxy with keyfuncs.Behind")
}
