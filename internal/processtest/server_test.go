package processtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

// serveID is the program of the tests below. It writes its process id to all who
// connect to the address in its second argument.
func serveID() {
	l, err := net.Listen("tcp", os.Args[2])
	if err != nil {
		fmt.Println("it cannot listen:", err)
		os.Exit(1)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintln(c, os.Getpid())
		_ = c.Close()
	}
}

func TestMain(m *testing.M) { Main(m, serveID) }

func id(s *Server) (string, error) {
	return s.Exchange("", func(r io.Reader) (string, error) {
		text, err := io.ReadAll(r)
		return strings.TrimSpace(string(text)), err
	})
}

// idServer is the program, which listens at what address returns.
func idServer(t *testing.T, address func(addr string) string) Program {
	t.Setenv(program, "1")
	return Program{
		Path: os.Args[0], Dir: t.TempDir(),
		Args:  func(host, port string) []string { return []string{"serve", address(net.JoinHostPort(host, port))} },
		Ready: func(s *Server) bool { got, err := id(s); return err == nil && got == fmt.Sprint(s.PID()) },
	}
}

func same(addr string) string { return addr }

func TestAServerIsRestartedAtItsAddress(t *testing.T) {
	s := Serve(t, idServer(t, same))
	addr, first := s.Addr, s.PID()
	s.Restart()
	if got, err := id(s); err != nil || got != fmt.Sprint(s.PID()) || s.PID() == first || s.Addr != addr {
		t.Errorf("%s answers at %s, %v; it was %d at %s", got, s.Addr, err, first, addr)
	}
	s.Stop()
	s.Stop()
	if got, err := id(s); err == nil {
		t.Errorf("%s answers after Stop", got)
	}
}

// The first address is somebody else's, who answers there.
func TestAServerWhoseAddressIsTakenGetsAnother(t *testing.T) {
	other := Serve(t, idServer(t, same))
	tries := 0
	p := idServer(t, func(addr string) string {
		if tries++; tries == 1 {
			return other.Addr
		}
		return addr
	})
	s := Serve(t, p)
	if got, err := id(s); err != nil || got != fmt.Sprint(s.PID()) || s.Addr == other.Addr || tries != 2 {
		t.Errorf("%s answers at %s, %v, after %d tries", got, s.Addr, err, tries)
	}
}

func TestAServerThatCannotStart(t *testing.T) {
	_, err := serve(t, idServer(t, func(string) string { return "nowhere" }))
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "it cannot listen") {
		t.Errorf("%v, want its last lines", err)
	}
	p := idServer(t, same)
	p.Path = "/no/such/program"
	if _, err := serve(t, p); err == nil || errors.Is(err, errEnded) {
		t.Errorf("%v, want that there is no such program", err)
	}
}
