package keyfuncs

import (
	"fmt"
	"net/netip"
	"testing"
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
		if a, port := parsePeer(s); err != nil || !ap.Addr().Is4() || ap.Addr().String() != s[:n] || a != ap.Addr() || !port {
			t.Errorf("%q: %q, and netip reads %v (%v)", s, s[:n], ap, err)
		}
	})
}

func TestEveryIPv4PeerTakesTheShortWay(t *testing.T) {
	octets := []int{0, 1, 9, 10, 99, 100, 199, 255}
	for _, a := range octets {
		for _, b := range octets {
			for _, c := range octets {
				host := fmt.Sprintf("%d.%d.%d.%d", a, b, c, 255-a)
				for _, port := range []int{0, 9, 80, 443, 8079, 65535} {
					if n := ipv4Host(fmt.Sprintf("%s:%d", host, port)); n != len(host) {
						t.Errorf("%s:%d: %d", host, port, n)
					}
				}
			}
		}
	}
}
