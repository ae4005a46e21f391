package keyfuncs

import (
	"net/netip"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

const (
	maxHops       = 32
	maxWalkLength = 4 << 10
)

// walkKey returns the key function for a header that lists hops, separated by commas. The last hop
// is on the right. lastComma returns the index of the last comma of a line that separates hops, or
// -1. parse returns the address of a hop; ok is false if it has none.
func (c *clientIP) walkKey(lastComma func(line string) int, parse func(hop string) (a netip.Addr, ok bool)) core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		a := c.peer(r)
		peer := a
		if !c.isProxy(a, 0) {
			c.warnIgnored(r)
			return c.appendKey(dst, a), nil
		}
		lines := r.HeaderValues(c.header)
		hops, length := 0, 0
		for i := len(lines) - 1; i >= 0; i-- {
			line := lines[i]
			over := length + len(line) - maxWalkLength
			cut := over > 0
			if cut {
				line = line[min(over, len(line)):]
			}
			length += len(line)
			for line != "" {
				comma := lastComma(line)
				part := trimSpace(line[comma+1:])
				line = line[:max(comma, 0)]
				if cut && line == "" { // part may be a part of a hop
					break
				}
				if part == "" {
					continue
				}
				hop, ok := parse(part)
				if hops++; !ok || hops > maxHops {
					why := errHeaderBad
					if ok {
						why = errHeaderLong
					}
					c.fallBack(r, why)
					return c.appendKey(dst, a), nil
				}
				if a = hop; !c.isProxy(a, hops) {
					return c.appendKey(dst, a), nil
				}
			}
			if cut {
				c.fallBack(r, errHeaderLong)
				return c.appendKey(dst, a), nil
			}
		}
		switch {
		case hops == 0:
			c.fallBack(r, errHeaderMissing)
		case hops < c.hops:
			c.fallBack(r, errHeaderShort)
			a = peer
		}
		return c.appendKey(dst, a), nil
	}
}

// lastComma returns the index of the last comma of a line of X-Forwarded-For, or -1.
func lastComma(line string) int { return strings.LastIndexByte(line, ',') }

// parseElement returns the address of a hop in the header Forwarded (RFC 7239, section 4). Commas
// separate the elements of the header, and semicolons separate the pairs of an element. The pair
// for=… has the hop's address.
func parseElement(element string) (a netip.Addr, ok bool) { return parseNode(forParameter(element)) }

// lastUnquotedComma returns the index of the last comma outside quotes, or -1. It reads from the
// right, so that text of the client on the left, such as a quote that is not closed, cannot hide
// the elements that proxies have added on the right.
func lastUnquotedComma(line string) int {
	quoted := false
	for i := len(line) - 1; i >= 0; i-- {
		switch line[i] {
		case '"':
			backslashes := len(line[:i]) - len(strings.TrimRight(line[:i], `\`))
			if backslashes%2 == 0 {
				quoted = !quoted
			}
		case ',':
			if !quoted {
				return i
			}
		}
	}
	return -1
}

// forParameter returns the value of the element's parameter "for", or "" if the element has no such
// parameter or does not follow the grammar. In the grammar, no parameter may be given twice.
func forParameter(element string) (value string) {
	names := make([]string, 0, 8)
	for element != "" {
		if element[0] == ';' { // an empty pair
			element = element[1:]
			continue
		}
		n := tokenLength(element)
		if n == 0 || n == len(element) || element[n] != '=' || len(names) == cap(names) {
			return ""
		}
		name := element[:n]
		for _, other := range names {
			if strings.EqualFold(other, name) {
				return ""
			}
		}
		names = append(names, name)
		v, rest, valid := parameterValue(element[n+1:])
		if !valid || rest != "" && rest[0] != ';' {
			return ""
		}
		if strings.EqualFold(name, "for") {
			value = v
		}
		element = rest
	}
	return value
}

// parameterValue returns the token or the quoted string (RFC 9110, section 5.6) with which s
// begins, and the rest of s. It leaves escapes in the string as they are: a hop with one has no
// address.
func parameterValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		n := tokenLength(s)
		return s[:n], s[n:], n > 0
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return s[1:i], s[i+1:], true
		case '\\':
			i++
		}
	}
	return "", "", false
}

// tokenLength returns the length in bytes of the token with which s begins.
func tokenLength(s string) int {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return i
		}
	}
	return len(s)
}

// parseNode parses a node (RFC 7239, section 6): an IPv4 address, or an IPv6 address in brackets,
// with or without a port. The identifier "unknown" and obfuscated identifiers are not addresses.
func parseNode(s string) (netip.Addr, bool) {
	if !strings.HasPrefix(s, "[") && strings.Count(s, ":") > 1 {
		return netip.Addr{}, false
	}
	return parseHop(s)
}

// parsePeer returns the IP address of a connection's peer, without a zone, and as an IPv4 address
// if it is an IPv4 address mapped into IPv6. The result is not valid if the peer has no IP address.
// port reports whether the address has a port, as that of a socket has.
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

func plain(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	return a.Unmap().WithZone("")
}

// nat64 is the well-known prefix of IPv4 addresses that are translated to IPv6 (RFC 6052, section
// 2.1).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// fromNAT64 returns the IPv4 address of a translated address, and all others unchanged.
func fromNAT64(a netip.Addr) netip.Addr {
	if !nat64.Contains(a) {
		return a
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// parseHop parses an address as proxies write it: the address alone, with a port, or in brackets
// with or without a port. netip.ParseAddr denies spellings that programs read differently: leading
// zeros, hexadecimal numbers, short forms.
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

// validPort reports whether s is ":" and a port, or ":" and an obfuscated port (RFC 7239, section
// 6.3).
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
