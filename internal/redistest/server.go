package redistest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/internal/freeport"
	"github.com/floodgate-go/floodgate/internal/leftout"
)

// Server is a running redis-server.
type Server struct {
	Addr string // host:port
	Dir  string // its working directory, which ends with the test

	t   testing.TB
	cmd *exec.Cmd
}

// Start starts a server with further options of redis.conf, each as on the
// command line: "--cluster-enabled", "yes".
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	return start(t, "", options)
}

// start starts a server; mode is "" or "--sentinel" with the configuration
// file before it.
func start(t testing.TB, config string, options []string) *Server {
	t.Helper()
	path := executable(t)
	var last string
	for range 10 { // somebody else may take the port meanwhile
		// Below 55000, so that a cluster's bus has a port too, 10000 above.
		s := &Server{Addr: freeport.Addr(t, 55_000), Dir: t.TempDir(), t: t}
		_, port, _ := net.SplitHostPort(s.Addr)
		var args []string
		if config != "" {
			file := filepath.Join(s.Dir, "redis.conf")
			if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, file)
		}
		args = append(args, "--port", port, "--bind", "127.0.0.1", "--dir", s.Dir, "--save", "", "--appendonly", "no", "--daemonize", "no")
		s.cmd = exec.Command(path, append(args, options...)...) //nolint:noctx // it ends with the test, by Cleanup
		out, err := s.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		go func() { _, _ = io.Copy(io.Discard, out) }()
		if s.answers() {
			return s
		}
		last = s.Addr
		s.Stop()
	}
	t.Fatalf("redis-server does not answer at %s", last)
	return nil
}

func executable(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err == nil {
		return path
	}
	const missing = "redis-server is not installed: apt-get install redis-server"
	leftout.Skip(t, missing)
	return ""
}

// answers waits until the server answers a PING, and reports whether it does.
func (s *Server) answers() bool {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if reply, err := s.Do("PING"); err == nil && strings.HasPrefix(reply, "+PONG") {
			return true
		}
		if s.exited() {
			return false
		}
		pause()
	}
	return false
}

func pause() { <-time.After(10 * time.Millisecond) }

func (s *Server) exited() bool {
	// Signal 0 only asks; a process that has ended is a zombie until waited for.
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// Do sends one inline command and returns the reply as it is on the wire: a
// status, an error or a number with its first character, a bulk string without.
func (s *Server) Do(command ...string) (string, error) {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		return "", err
	}
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if !strings.HasPrefix(line, "$") || line == "$-1" {
		return line, nil
	}
	var n int
	if _, err := fmt.Sscanf(line, "$%d", &n); err != nil {
		return "", err
	}
	buf := make([]byte, n)
	_, err = io.ReadFull(r, buf)
	return string(buf), err
}

// MustDo is Do that ends the test where the reply is an error.
func (s *Server) MustDo(command ...string) string {
	s.t.Helper()
	reply, err := s.Do(command...)
	if err == nil && strings.HasPrefix(reply, "-") {
		err = fmt.Errorf("%s", reply)
	}
	if err != nil {
		s.t.Fatalf("redis %v: %v", command, err)
	}
	return reply
}

// Port returns the port of Addr.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}

// Stop ends the server at once, as a crash would. Stopping again does nothing.
func (s *Server) Stop() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// Restart stops the server and starts it again at the same address, empty.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.cmd = exec.Command(s.cmd.Path, s.cmd.Args[1:]...) //nolint:noctx,gosec // as start has started it
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if !s.answers() {
		s.t.Fatalf("redis-server does not answer at %s after a restart", s.Addr)
	}
}

// WaitFor polls until ok returns true, and ends the test where it does not
// within half a minute.
func WaitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		pause()
	}
}
