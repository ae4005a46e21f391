// Package memcachedtest starts real memcached servers for tests. Each has a port of its own on the
// loopback interface and ends with its test.
//
// If memcached is not installed, the test is skipped; if the environment has
// FLOODGATE_REQUIRE_SERVERS=1, it fails.
package memcachedtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/leftout"
	"github.com/floodgate-go/floodgate/internal/processtest"
)

// Server is a running memcached. Stop ends it as a crash would, and Restart starts it again, empty.
type Server struct {
	*processtest.Server

	t testing.TB
}

// Start starts a server with further options as on the command line: "-m", "4".
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	path, err := exec.LookPath("memcached")
	if err != nil {
		leftout.Skip(t, "memcached is not installed: apt-get install memcached")
	}
	args := func(host, port string) []string {
		args := append([]string{"-l", host, "-p", port, "-U", "0"}, options...)
		if os.Geteuid() == 0 {
			args = append(args, "-u", "nobody") // it refuses to run as root
		}
		return args
	}
	return &Server{processtest.Serve(t, processtest.Program{Path: path, Dir: t.TempDir(), Args: args, Ready: ready}), t}
}

// ready asks the server for its process id.
func ready(s *processtest.Server) bool {
	reply, err := s.Exchange("stats\r\n", untilEnd)
	return err == nil && strings.Contains(reply, fmt.Sprintf("STAT pid %d\r\n", s.PID()))
}

// untilEnd reads a reply that ends with a line END, which it leaves out.
func untilEnd(c io.Reader) (string, error) {
	var all strings.Builder
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString('\n')
		if err != nil || line == "END\r\n" {
			return all.String(), err
		}
		all.WriteString(line)
	}
}

// Do sends one command and returns the first line of the reply.
func (s *Server) Do(command string) (string, error) {
	return s.Exchange(command+"\r\n", func(c io.Reader) (string, error) {
		line, err := bufio.NewReader(c).ReadString('\n')
		return strings.TrimSuffix(line, "\r\n"), err
	})
}

// All sends a command whose reply ends with a line END, and returns the lines before that one.
func (s *Server) All(command string) string {
	s.t.Helper()
	all, err := s.Exchange(command+"\r\n", untilEnd)
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// MustDo is Do that ends the test if there is no reply or the reply is an error.
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
