// Package postgrestest starts real PostgreSQL servers for tests. Each has a
// port of its own on the loopback interface, data of its own that is not kept,
// and ends with its test.
//
// Where PostgreSQL is not installed the test is skipped, or fails where the
// environment has FLOODGATE_REQUIRE_SERVERS=1.
package postgrestest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/internal/freeport"
	"github.com/floodgate-go/floodgate/internal/leftout"
)

// Server is a running PostgreSQL.
type Server struct {
	URL  string // of the database "postgres", for its superuser
	Addr string // host:port

	cmd *exec.Cmd
}

// Start starts a server with an empty database.
func Start(t testing.TB) *Server {
	t.Helper()
	bin := executables(t)
	dir, err := os.MkdirTemp("", "postgrestest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attributes := unprivileged(t, dir)
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(t.Context(), filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, attributes
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	// A file, and no pipe: its processes would keep that open.
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the server has it
	for range 10 {    // somebody else may take the port meanwhile
		s := &Server{Addr: freeport.Addr(t, 1<<16)}
		host, port, _ := net.SplitHostPort(s.Addr)
		s.URL = fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", s.Addr)
		s.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-h", host, "-p", port, "-k", dir, "-F") //nolint:noctx // it ends with the test, by Cleanup
		s.cmd.Dir, s.cmd.SysProcAttr, s.cmd.Stderr = dir, attributes, log
		if err := s.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		if s.answers(dir, port, bin, attributes) {
			return s
		}
		s.Stop()
	}
	text, _ := os.ReadFile(log.Name())
	t.Fatalf("PostgreSQL does not answer:\n%s", text)
	return nil
}

// executables returns the folder of the newest version that is installed.
func executables(t testing.TB) string {
	t.Helper()
	// Debian keeps them out of the path.
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Sort(found)
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append([]string{filepath.Dir(path)}, found...)
	}
	for _, bin := range slices.Backward(found) {
		if whole(bin) {
			return bin
		}
	}
	const missing = "PostgreSQL is not installed: apt-get install postgresql"
	leftout.Skip(t, missing)
	return ""
}

// whole says that a folder has all the programs that Start needs.
func whole(bin string) bool {
	for _, name := range []string{"initdb", "postgres", "pg_isready"} {
		if _, err := exec.LookPath(filepath.Join(bin, name)); err != nil {
			return false
		}
	}
	return true
}

// answers waits until the server takes connections.
func (s *Server) answers(dir, port, bin string, attributes *syscall.SysProcAttr) bool {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		ready := exec.Command(filepath.Join(bin, "pg_isready"), "-h", dir, "-p", port) //nolint:noctx // it asks once
		ready.Dir, ready.SysProcAttr = dir, attributes
		if ready.Run() == nil {
			return true
		}
	}
	return false
}

// Stop ends the server at once, as a crash would. Stopping again does nothing.
func (s *Server) Stop() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // immediate shutdown, children too
		_ = s.cmd.Wait()
	}
}
