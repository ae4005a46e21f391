package memcachedstore_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

// fill stores values of all sizes until a server that evicts nothing is full.
func fill(t *testing.T, server *memcachedtest.Server) {
	t.Helper()
	c, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	replies, n := bufio.NewReader(c), 0
	for size := 20; size < 2000; size = size*5/4 + 1 {
		for stored := 1; stored > 0; {
			const many = 1000 // at a time
			var sets strings.Builder
			for range many {
				n++
				fmt.Fprintf(&sets, "set fill%d 0 0 %d\r\n%s\r\n", n, size, strings.Repeat("x", size))
			}
			go func() { _, _ = c.Write([]byte(sets.String())) }() // the server stops reading if nobody reads its replies
			stored = 0
			for range many {
				reply, err := replies.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(reply, "STORED") {
					stored++
				}
			}
		}
	}
}

// A server that evicts nothing and has no room rejects a charge: it was not made.
func TestAFullServerChargesNothing(t *testing.T) {
	t.Parallel()
	server := memcachedtest.Start(t, "-M", "-m", "2")
	fill(t, server)
	l := newLimiter(t, newStore(t, []string{server.Addr}, memcachedstore.Timeout(patience)), "full", core.PerHour(10))
	_, err := take(l, "k")
	if !errors.Is(err, core.ErrNotCharged) {
		t.Errorf("error %v, want one that says that nothing was charged", err)
	}
	if reply, err := server.Do("flush_all"); err != nil || reply != "OK" {
		t.Fatal(reply, err)
	}
	if n := left(t, l, "k"); n != 10 {
		t.Errorf("%d left of 10", n)
	}
}

// Nobody listens.
func TestAServerThatIsGoneChargesNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	l := newLimiter(t, newStore(t, []string{listener.Addr().String()}, memcachedstore.Timeout(patience)), "gone", core.PerHour(10))
	if _, err := take(l, "k"); !errors.Is(err, core.ErrNotCharged) {
		t.Errorf("error %v, want one that says that nothing was charged", err)
	}
}
