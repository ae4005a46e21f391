// Package faultproxy stands between a client and a server in tests, and does to their connections
// what networks do: it loses, delays and swallows replies and cuts connections.
package faultproxy

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Fault is what happens to a reply: to what the server sends at one time.
type Fault int

const (
	// None lets it through.
	None Fault = iota
	// Cut closes the connection with a reset instead.
	Cut
	// Swallow loses it, and leaves the connection open.
	Swallow
)

// Proxy is a listening proxy. Its methods may be called concurrently.
type Proxy struct {
	Addr string // where it listens

	target string
	ctx    context.Context //nolint:containedctx // ends with the test
	mu     sync.Mutex
	fault  Fault
	next   int // so many replies suffer the fault, then none; below 0: all
	delay  time.Duration
	lost   int
	held   int
	hold   chan struct{} // closed when replies are no longer held; nil: they are not
	stall  chan struct{} // the same for requests
	conns  map[net.Conn]struct{}
	closed bool
	wg     sync.WaitGroup
}

// Start starts a proxy before the server at target. It ends with the test.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, ctx: t.Context(), conns: map[net.Conn]struct{}{}}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Release()
		p.CutAll()
		p.wg.Wait()
	})
	return p
}

// Fail makes the next n replies suffer the fault, all of them where n is below 0.
func (p *Proxy) Fail(f Fault, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.next = f, n
}

// Delay makes every reply come so much later.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Hold makes the replies that come from now on wait until Release. What Fail says when a reply
// comes is what happens to it then.
func (p *Proxy) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold == nil {
		p.hold = make(chan struct{})
	}
}

// Stall makes what clients send from now on wait until Release: it reaches the server late, and
// that of several connections in any order.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stall == nil {
		p.stall = make(chan struct{})
	}
}

// Held returns how many replies wait.
func (p *Proxy) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Release lets the replies and requests go that wait, and holds no others.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold != nil {
		close(p.hold)
	}
	if p.stall != nil {
		close(p.stall)
	}
	p.hold, p.stall, p.held = nil, nil, 0
}

// Lost returns how many replies have suffered a fault.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// CutAll resets all connections that are open.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		reset(c)
	}
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// keep remembers a connection; false where the proxy has ended.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// suffers returns what is to happen to the reply that has just come, and what it waits for before.
func (p *Proxy) suffers() (Fault, time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold != nil {
		p.held++
	}
	if p.fault == None || p.next == 0 {
		return None, p.delay, p.hold
	}
	p.next--
	p.lost++
	return p.fault, p.delay, p.hold
}

func (p *Proxy) serve(client net.Conn) {
	defer reset(client)
	server, err := (&net.Dialer{Timeout: time.Second}).DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer reset(server)
	if !p.keep(client) || !p.keep(server) {
		return
	}
	defer p.forget(client)
	defer p.forget(server)
	p.wg.Go(func() {
		defer reset(server)
		pipe(server, client, func() (Fault, time.Duration, <-chan struct{}) { return None, 0, p.stalled() })
	})
	pipe(client, server, p.suffers)
}

func (p *Proxy) stalled() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stall
}

func pipe(to, from net.Conn, suffers func() (Fault, time.Duration, <-chan struct{})) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		fault, delay, hold := suffers()
		if hold != nil {
			<-hold
		}
		if delay > 0 {
			<-time.After(delay)
		}
		switch fault {
		case Cut:
			return
		case Swallow:
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
