package inflight

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// acquired returns a decision with the only slot of a limiter, and a function that tells
// whether the slot is free.
func acquired(t *testing.T) (d core.Decision, free func() bool) {
	t.Helper()
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.InFlight(1)}}}}))
	hit := core.Hit{Rule: "r", Key: "k"}
	d, _, err := l.Acquire(t.Context(), hit)
	if err != nil {
		t.Fatal(err)
	}
	return d, func() bool {
		d, err := l.Peek(context.Background(), 1, hit)
		return err == nil && d.Allowed
	}
}

func TestTheEndOfAConnectionReleases(t *testing.T) {
	d, free := acquired(t)
	server, client := net.Pipe()
	defer func() { _ = client.Close() }()
	conn := Conn(&d, server)
	if free() {
		t.Error("the slot is free while the connection is open")
	}
	if n, ok := conn.(interface{ NetConn() net.Conn }); !ok || n.NetConn() != server {
		t.Errorf("the connection is not to be had: %T", conn)
	}
	if err := conn.Close(); err != nil || !free() {
		t.Errorf("%v; the slot is free: %v", err, free())
	}
	_ = conn.Close()
	if again := Conn(&d, server); again != server {
		t.Error("a decision without leases wraps the connection")
	}
}

// halfPipe can be closed for writing alone.
type halfPipe struct {
	net.Conn
	closed *bool
}

func (p halfPipe) CloseWrite() error {
	*p.closed = true
	return nil
}

func TestAConnectionThatIsClosedForWritingHoldsItsSlot(t *testing.T) {
	d, free := acquired(t)
	closed := false
	conn := Conn(&d, halfPipe{closed: &closed})
	if err := conn.(halfCloser).CloseWrite(); err != nil || !closed || free() {
		t.Errorf("%v, closed: %v, free: %v", err, closed, free())
	}
}

func TestWhatIsDroppedReleases(t *testing.T) {
	for name, hold := range map[string]func(*core.Decision){
		"closer":          func(d *core.Decision) { _ = Closer(d) },
		"connection":      func(d *core.Decision) { _ = Conn(d, stuck{}) },
		"half connection": func(d *core.Decision) { _ = Conn(d, halfPipe{}) },
	} {
		d, free := acquired(t)
		hold(&d)
		for range 1000 {
			if runtime.GC(); free() {
				break
			}
			runtime.Gosched()
		}
		if !free() {
			t.Errorf("%s: the slot is held", name)
		}
	}
}

// stuck is a connection whose Close fails.
type stuck struct{ net.Conn }

func (stuck) Close() error { return net.ErrClosed }

func TestAConnectionWhoseCloseFailsReleases(t *testing.T) {
	d, free := acquired(t)
	if err := Conn(&d, stuck{}).Close(); !errors.Is(err, net.ErrClosed) || !free() {
		t.Errorf("%v; the slot is free: %v", err, free())
	}
}

func TestACloserReleases(t *testing.T) {
	d, free := acquired(t)
	if c := Closer(&d); c.Close() != nil || !free() {
		t.Error("the slot is held")
	}
	if Closer(&d) != nil {
		t.Error("a decision without leases has a closer")
	}
}
