// Package inflight holds the slots of a request for what goes on after its handler: see
// core.Leases.
package inflight

import (
	"io"
	"net"
	"runtime"

	"github.com/floodgate-go/floodgate/core"
)

// Conn returns the connection that a handler has taken over. If the decision has leases,
// it is a connection that releases them when it is closed, or dropped without being closed;
// its method NetConn returns conn.
func Conn(d *core.Decision, conn net.Conn) net.Conn {
	release, held := d.Hold()
	if !held {
		return conn
	}
	c := &heldConn{conn, release}
	runtime.AddCleanup(c, background, release)
	if half, ok := conn.(halfCloser); ok {
		return &halfConn{c, half}
	}
	return c
}

// Closer returns what releases the leases of the decision when it is closed, or dropped
// without being closed; nil if the decision has none.
func Closer(d *core.Decision) io.Closer {
	release, held := d.Hold()
	if !held {
		return nil
	}
	c := &closer{release}
	runtime.AddCleanup(c, background, release)
	return c
}

// background releases without keeping the runtime's own goroutine from other cleanups.
func background(release func()) { go release() }

type closer struct{ release func() }

// Close implements io.Closer.
func (c *closer) Close() error {
	c.release()
	return nil
}

type heldConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *heldConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// NetConn returns the connection as the server had it.
func (c *heldConn) NetConn() net.Conn { return c.Conn }

type halfCloser interface{ CloseWrite() error }

// halfConn is of a connection that can be closed for writing alone.
type halfConn struct {
	*heldConn
	halfCloser
}
