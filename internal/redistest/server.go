// Package redistest starts real Redis servers for tests: one, a cluster of
// three, or a primary with a replica and a Sentinel. Each has a port of its own
// on the loopback interface, keeps nothing on disk, and ends with its test.
//
// FLOODGATE_REDIS in the environment names the redis-server to start, so that the
// tests can run with the oldest version that the store supports.
//
// If redis-server is not installed, the test is skipped; if the environment has
// FLOODGATE_REQUIRE_SERVERS=1, it fails.
package redistest

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/leftout"
	"github.com/floodgate-go/floodgate/internal/processtest"
)

// Server is a running redis-server. Stop ends it as a crash would, and Restart
// starts it again, empty.
type Server struct {
	*processtest.Server

	t testing.TB
}

// Start starts a server with further options of redis.conf, each as on the
// command line: "--cluster-enabled", "yes".
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	return start(t, "", options)
}

// start starts a server. The configuration, if there is one, is a file before the
// options: a Sentinel needs one.
func start(t testing.TB, config string, options []string) *Server {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("FLOODGATE_REDIS"), "redis-server"))
	if err != nil {
		leftout.Skip(t, "redis-server is not installed: apt-get install redis-server")
	}
	dir := t.TempDir()
	args := func(host, port string) []string {
		return append([]string{"--port", port, "--bind", host, "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no"}, options...)
	}
	if config != "" {
		file := filepath.Join(dir, "redis.conf")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		plain := args
		args = func(host, port string) []string { return append([]string{file}, plain(host, port)...) }
	}
	// Below 55000, so that a cluster's bus has a port too, 10000 above.
	return &Server{processtest.Serve(t, processtest.Program{Path: path, Dir: dir, Args: args, Below: 55_000, Ready: ready}), t}
}

// ready asks the server for its process id.
func ready(s *processtest.Server) bool {
	reply, err := do(s, "INFO", "server")
	return err == nil && strings.Contains(reply, fmt.Sprintf("process_id:%d\r\n", s.PID()))
}

// Do sends one command and returns the reply as it is on the wire: a status, an
// error or a number with its first character, a bulk string without.
func (s *Server) Do(command ...string) (string, error) { return do(s.Server, command...) }

func do(s *processtest.Server, command ...string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return s.Exchange(b.String(), func(c io.Reader) (string, error) {
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
	})
}

// MustDo is Do that ends the test if the reply is an error.
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
