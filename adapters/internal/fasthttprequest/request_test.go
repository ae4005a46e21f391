package fasthttprequest

import (
	"net"
	"testing"

	"github.com/valyala/fasthttp"
)

// A key function or a hook may keep the text of an address.
func TestTextsOfAddressesStay(t *testing.T) {
	var c fasthttp.RequestCtx
	r := Request{fast: &c}
	var addrs []net.Addr
	for i := range 200 { // several blocks
		addrs = append(addrs,
			&net.TCPAddr{IP: net.IPv4(192, 0, 2, byte(i)), Port: i},
			&net.TCPAddr{IP: net.ParseIP("2001:db8::ff"), Port: i, Zone: "a zone with a name that is longer than the others, and than its buffer"},
			&net.UnixAddr{Net: "unix", Name: "/run/a"},
		)
	}
	var texts []string
	for _, a := range addrs {
		c.SetRemoteAddr(a)
		texts = append(texts, r.RemoteAddr())
	}
	for i, a := range addrs {
		if texts[i] != a.String() {
			t.Fatalf("address %d: %q, want %q", i, texts[i], a)
		}
	}
}
