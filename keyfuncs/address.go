package keyfuncs

import (
	"net/netip"
	"strings"
)

// parsePeer returns the IP address of a connection's peer, without a zone, and as an
// IPv4 address if it is an IPv4 address mapped into IPv6. The result is not valid if
// the peer has no IP address. port reports whether the address has a port, as that of a
// socket has.
func parsePeer(remote string) (a netip.Addr, port bool) {
	if ap, err := netip.ParseAddrPort(remote); err == nil {
		return plain(ap.Addr()), true
	}
	a, err := netip.ParseAddr(strings.Trim(remote, "[]"))
	if err != nil {
		return netip.Addr{}, false
	}
	return plain(a), false
}

// ipv4Host returns the length of the address at the beginning of an IPv4 address with a
// port, such as 192.0.2.1:80. It returns 0 for all other texts, also for some that
// parsePeer accepts. parsePeer gives the same address, in three times the time.
func ipv4Host(s string) int {
	octets, digits, value := 0, 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			if value = 10*value + int(c-'0'); value > 255 || digits > 0 && value < 10 { // no leading zeros
				return 0
			}
			digits++
		case digits == 0:
			return 0
		case c == '.' && octets < 3:
			octets++
			digits, value = 0, 0
		case c == ':' && octets == 3 && isPort(s[i+1:]):
			return i
		default:
			return 0
		}
	}
	return 0
}

// isPort reports whether s is a number of one to five digits, at most 65535.
func isPort(s string) bool {
	if s == "" || len(s) > len("65535") {
		return false
	}
	port := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
		port = 10*port + int(s[i]-'0')
	}
	return port <= 65535
}

func plain(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	return a.Unmap().WithZone("")
}

// nat64 is the well-known prefix of IPv4 addresses that are translated to IPv6 (RFC
// 6052, section 2.1).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// fromNAT64 returns the IPv4 address of a translated address, and all others unchanged.
func fromNAT64(a netip.Addr) netip.Addr {
	if !nat64.Contains(a) {
		return a
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// parseHop parses an address as proxies write it: the address alone, with a port, or
// in brackets with or without a port. netip.ParseAddr refuses spellings that programs
// read differently: leading zeros, hexadecimal numbers, short forms.
func parseHop(s string) (netip.Addr, bool) {
	host, port := s, ""
	switch {
	case strings.HasPrefix(s, "["):
		var closed bool
		host, port, closed = strings.Cut(s[1:], "]")
		if !closed || !strings.Contains(host, ":") { // brackets are for IPv6
			return netip.Addr{}, false
		}
	case strings.Count(s, ":") == 1:
		i := strings.IndexByte(s, ':')
		host, port = s[:i], s[i:]
	}
	if port != "" && !validPort(port) {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, false
	}
	return plain(a), true
}

// validPort reports whether s is ":" and a port, or ":" and an obfuscated port (RFC
// 7239, section 6.3).
func validPort(s string) bool {
	if s[0] != ':' {
		return false
	}
	s = s[1:]
	if strings.HasPrefix(s, "_") {
		return len(s) > 1 && strings.Trim(s[1:], alphanumeric+"._-") == ""
	}
	return s != "" && len(s) <= 5 && strings.Trim(s, "0123456789") == ""
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// trimSpace removes optional white space (RFC 9110, section 5.6.3) at both ends.
func trimSpace(s string) string { return strings.Trim(s, " \t") }
