// Package processtest starts processes for tests: the servers that a test needs, and programs of
// the test binary. Each process that Serve or Start has started is killed when its test ends.
//
//   - Serve starts a server at a free address and waits until it answers.
//     Packages redistest, memcachedtest and postgrestest use it.
//   - Start runs the program of the test binary in a process of its own, which may
//     be the main function of a package main. Main says which program that is.
package processtest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

// process is a process that is killed when its test ends, unless it has ended by then.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	err   error         // how it has ended; may be read once ended is closed
}

// run starts a process. onEnd is called when it has ended, unless it is nil.
func run(t testing.TB, cmd *exec.Cmd, onEnd func()) (*process, error) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		if onEnd != nil {
			onEnd()
		}
		close(p.ended)
	}()
	t.Cleanup(func() { p.end(os.Kill) })
	return p, nil
}

// hasEnded returns whether the process has ended.
func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// end sends a signal to the process and waits for its end. The process is killed if the system
// cannot send the signal. It returns at once if the process has ended.
func (p *process) end(with os.Signal) {
	if p.hasEnded() {
		return
	}
	if err := p.cmd.Process.Signal(with); err != nil {
		_ = p.cmd.Process.Kill()
	}
	<-p.ended
}

// interval is the time between two looks at a condition.
const interval = 5 * time.Millisecond

// WaitFor looks at a condition until it is true, and ends the test if it is not true within half a
// minute.
func WaitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); <-time.After(interval) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// FreeAddr returns an address of the loopback interface, as host:port, that nobody listens at now,
// with a port below the bound (0: any port). Another process may take the address before it is
// used: the caller then tries again.
func FreeAddr(t testing.TB, below int) string {
	t.Helper()
	for range 100 {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().(*net.TCPAddr)
		_ = l.Close()
		if below == 0 || addr.Port < below {
			return addr.String()
		}
	}
	t.Fatalf("no free port below %d", below)
	return ""
}
