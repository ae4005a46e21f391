// Package postgrestest starts real PostgreSQL servers for tests. Each has a port of its own on the
// loopback interface, data of its own that is not kept, and ends with its test.
//
// If PostgreSQL is not installed, the test is skipped; if the environment has
// FLOODGATE_REQUIRE_SERVERS=1, it fails.
package postgrestest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/floodgate-go/floodgate/internal/leftout"
	"github.com/floodgate-go/floodgate/internal/processtest"
)

// Server is a running PostgreSQL. Stop ends it and its children as a crash would, and Restart
// starts it again with its data.
type Server struct {
	*processtest.Server

	URL string // of the database "postgres", for its superuser
}

// Start starts a server with an empty database.
func Start(t testing.TB) *Server {
	t.Helper()
	bin := executables(t)
	// Not t.TempDir, which nobody else may enter: the server is not root.
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
	s := processtest.Serve(t, processtest.Program{
		Path: filepath.Join(bin, "postgres"), Dir: dir, Attributes: attributes,
		Args: func(host, port string) []string {
			return []string{"-D", data, "-h", host, "-p", port, "-k", dir, "-F"}
		},
		Ready: func(s *processtest.Server) bool {
			// By its socket, which is in a folder of its own.
			ready := exec.CommandContext(t.Context(), filepath.Join(bin, "pg_isready"), "-h", dir, "-p", s.Port())
			ready.Dir, ready.SysProcAttr = dir, attributes
			return ready.Run() == nil
		},
		Quit: syscall.SIGQUIT, // an immediate shutdown, children too
	})
	return &Server{s, fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", s.Addr)}
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
	leftout.Skip(t, "PostgreSQL is not installed: apt-get install postgresql")
	return ""
}

// whole returns whether a folder has all the programs that Start needs.
func whole(bin string) bool {
	for _, name := range []string{"initdb", "postgres", "pg_isready"} {
		if _, err := exec.LookPath(filepath.Join(bin, name)); err != nil {
			return false
		}
	}
	return true
}
