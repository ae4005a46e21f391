package keyfuncs

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// The short way and netip read the same address, or the short way reads none.
func FuzzIPv4Host(f *testing.F) {
	for _, s := range []string{
		"192.0.2.1:80", "0.0.0.0:0", "255.255.255.255:65535", "256.0.0.1:80", "1.2.3.4:65536", "1.2.3.4:99999", "01.2.3.4:80", "1.2.3.00:80",
		"1.2.3.4", "1.2.3.4:", "1.2.3:80", "1.2.3.4.5:80", "1.2.3.4:000080", "1.2.3.4:00080", "1.2.3.4:+80", "1.2.3.4:80 ", " 1.2.3.4:80", "1.2.3.:80",
		"1.2.3.4000:1", "[::1]:80", "[::ffff:1.2.3.4]:80", "@", "", ":80", "1..2.3:4", "1.2.3.4:8o",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := ipv4Host(s)
		ap, err := netip.ParseAddrPort(s)
		if n == 0 {
			if err == nil && ap.Addr().Is4() && ap.String() == s {
				t.Errorf("%q takes the long way", s)
			}
			return
		}
		if err != nil || !ap.Addr().Is4() || ap.Addr().String() != s[:n] || parsePeer(s) != ap.Addr() {
			t.Errorf("%q: %q, and netip reads %v (%v)", s, s[:n], ap, err)
		}
	})
}

func TestEveryIPv4PeerTakesTheShortWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		octet := rapid.IntRange(0, 255)
		host := fmt.Sprintf("%d.%d.%d.%d", octet.Draw(t, "a"), octet.Draw(t, "b"), octet.Draw(t, "c"), octet.Draw(t, "d"))
		remote := fmt.Sprintf("%s:%d", host, rapid.IntRange(0, 65535).Draw(t, "port"))
		if n := ipv4Host(remote); n != len(host) {
			t.Fatalf("%s: %d", remote, n)
		}
	})
}
