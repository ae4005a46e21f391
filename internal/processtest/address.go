package processtest

import (
	"context"
	"net"
	"testing"
)

// FreeAddr returns an address of the loopback interface, as host:port, that
// nobody listens at now, with a port below the bound (0: any port). Another
// process may take the address before it is used: the caller then tries again.
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
