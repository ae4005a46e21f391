// Package memcachedtest starts real memcached servers for tests. Each has a
// port of its own on the loopback interface and ends with its test.
//
// Where memcached is not installed the test is skipped, or fails where the
// environment has FLOODGATE_REQUIRE_SERVERS=1.
package memcachedtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/internal/freeport"
	"github.com/floodgate-go/floodgate/internal/leftout"
)

// Server is a running memcached.
type Server struct {
	Addr string // host:port

	t    testing.TB
	args []string
	cmd  *exec.Cmd
}

// Start starts a server with further options as on the command line: "-m", "4".
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	path, err := exec.LookPath("memcached")
	if err != nil {
		const missing = "memcached is not installed: apt-get install memcached"
		leftout.Skip(t, missing)
	}
	last := ""
	for range 10 { // somebody else may take the port meanwhile
		s := &Server{Addr: freeport.Addr(t, 1<<16), t: t}
		_, port, _ := net.SplitHostPort(s.Addr)
		s.args = append([]string{path, "-l", "127.0.0.1", "-p", port, "-U", "0"}, options...)
		if os.Geteuid() == 0 {
			s.args = append(s.args, "-u", "nobody") // it refuses to run as root
		}
		t.Cleanup(s.Stop)
		if s.run() {
			return s
		}
		last = s.Addr
		s.Stop()
	}
	t.Fatalf("memcached does not answer at %s", last)
	return nil
}

// run starts the process and waits until it answers.
func (s *Server) run() bool {
	s.cmd = exec.Command(s.args[0], s.args[1:]...) //nolint:noctx // it ends with the test, by Cleanup
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if reply, err := s.Do("version"); err == nil && strings.HasPrefix(reply, "VERSION") {
			return true
		}
		<-time.After(5 * time.Millisecond)
	}
	return false
}

// Do sends one command and returns the first line of the reply.
func (s *Server) Do(command string) (string, error) {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // of no interest any more
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, command+"\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSuffix(line, "\r\n"), err
}

// All sends a command whose reply ends with a line END, and returns all of it.
func (s *Server) All(command string) string {
	s.t.Helper()
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", s.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // of no interest any more
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, command+"\r\n"); err != nil {
		s.t.Fatal(err)
	}
	var all strings.Builder
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			s.t.Fatal(err)
		}
		if line == "END\r\n" {
			return all.String()
		}
		all.WriteString(line)
	}
}

// MustDo is Do that ends the test where there is no reply, or an error.
func (s *Server) MustDo(command string) string {
	s.t.Helper()
	reply, err := s.Do(command)
	if err == nil && strings.Contains(reply, "ERROR") {
		err = fmt.Errorf("%s", reply)
	}
	if err != nil {
		s.t.Fatalf("memcached %q: %v", command, err)
	}
	return reply
}

// Stop ends the server at once, as a crash would. Stopping again does nothing.
func (s *Server) Stop() {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// Restart stops the server and starts it again at the same address, empty.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	if !s.run() {
		s.t.Fatal("memcached does not come back")
	}
}
