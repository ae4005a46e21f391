// Package freeport finds addresses for the servers that tests start.
package freeport

import (
	"context"
	"net"
	"testing"
)

// Addr returns an address of the loopback interface, as host:port, that nobody
// listens at just now, with a port below the bound. Somebody may take it before
// it is used: who starts a server tries again with another.
func Addr(t testing.TB, below int) string {
	t.Helper()
	for range 100 {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().(*net.TCPAddr)
		_ = l.Close()
		if addr.Port < below {
			return addr.String()
		}
	}
	t.Fatalf("no free port below %d", below)
	return ""
}
