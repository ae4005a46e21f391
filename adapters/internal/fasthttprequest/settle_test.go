package fasthttprequest

import (
	"crypto/tls"
	"net"
	"testing"
)

func TestWhichConnectionsAreClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // of a test
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	gone, goneTLS := dial(), tls.Client(dial(), &tls.Config{}) //nolint:gosec // nothing is sent
	_, _ = gone.Close(), goneTLS.NetConn().Close()
	pipe, _ := net.Pipe()
	_ = pipe.Close()
	for name, row := range map[string]struct {
		conn net.Conn
		want bool
	}{
		"TCP": {dial(), false}, "TLS": {tls.Client(dial(), &tls.Config{}), false}, //nolint:gosec // nothing is sent
		"TCP, closed": {gone, true}, "TLS, closed": {goneTLS, true},
		"none": {nil, false}, "one that cannot tell": {pipe, false},
	} {
		if got := closed(row.conn); got != row.want {
			t.Errorf("%s: closed is %v", name, got)
		}
	}
}
