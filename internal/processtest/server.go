package processtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Program is a server program and how it is run.
type Program struct {
	Path       string
	Args       func(host, port string) []string
	Dir        string               // the working directory; the log is written there
	Attributes *syscall.SysProcAttr // nil: those of the test
	Below      int                  // the server's port is below it; 0: any port
	Quit       os.Signal            // what Stop sends; nil: os.Kill, which is like a crash

	// Ready asks the server whether it answers and is the process that Serve has started: another
	// one may have taken the address.
	Ready func(*Server) bool
}

// Server is a server that Serve has started. Addr, Port, PID and Exchange may be used concurrently
// if nothing stops or restarts the server meanwhile.
type Server struct {
	Addr string // host:port

	t       testing.TB
	program Program
	log     string
	process *process
}

// startWithin is how long a server may take until it answers.
const startWithin = time.Minute

// Serve starts a server at a free address of the loopback interface, waits until it answers, and
// stops it when the test ends.
func Serve(t testing.TB, p Program) *Server {
	t.Helper()
	s, err := serve(t, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func serve(t testing.TB, p Program) (*Server, error) {
	t.Helper()
	if p.Quit == nil {
		p.Quit = os.Kill
	}
	s := &Server{t: t, program: p, log: filepath.Join(p.Dir, "log")}
	t.Cleanup(s.Stop)
	var err error
	for range 10 { // another process may take the address before the server does
		s.Addr = FreeAddr(t, p.Below)
		if err = s.start(); err == nil || !errors.Is(err, errEnded) {
			break
		}
	}
	return s, err
}

var errEnded = errors.New("ended before it answered")

// start starts the server at its address and waits until it answers.
func (s *Server) start() error {
	// A file, and no pipe: children of a server that has ended may keep a pipe open.
	log, err := os.OpenFile(s.log, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has its own
	host, port, _ := net.SplitHostPort(s.Addr)
	cmd := exec.Command(s.program.Path, s.program.Args(host, port)...) //nolint:noctx,gosec // a test's server; it ends with the test, by Cleanup
	cmd.Dir, cmd.SysProcAttr = s.program.Dir, s.program.Attributes
	cmd.Stdout, cmd.Stderr = log, log
	if s.process, err = run(s.t, cmd, nil); err != nil {
		return err
	}
	for end := time.Now().Add(startWithin); !s.program.Ready(s); <-time.After(interval) {
		if s.process.hasEnded() {
			return fmt.Errorf("%s %w at %s:\n%s", s.program.Path, errEnded, s.Addr, s.lastLines())
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s does not answer at %s:\n%s", s.program.Path, s.Addr, s.lastLines())
		}
	}
	return nil
}

// lastLines returns the end of what the server has written.
func (s *Server) lastLines() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-lastBytes):])
}

// Port returns the port of Addr.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}

// PID returns the process id. It changes with each restart.
func (s *Server) PID() int { return s.process.cmd.Process.Pid }

// Exchange connects to the server, sends a request, and returns what read makes of the reply. It
// gives up after five seconds.
func (s *Server) Exchange(request string, read func(io.Reader) (string, error)) (string, error) {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		return "", err
	}
	return read(c)
}

// Stop ends the server and waits for its end. It does nothing if the server has ended.
func (s *Server) Stop() {
	if s.process != nil {
		s.process.end(s.program.Quit)
	}
}

// Restart stops the server and starts it again at the same address. If a client of another server
// has got the port meanwhile, it waits until that has ended.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	err := s.start()
	for end := time.Now().Add(startWithin); errors.Is(err, errEnded) && time.Now().Before(end); <-time.After(interval) {
		err = s.start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
