package keyfuncs

import (
	"net/netip"
	"strings"
)

// forwarded reads Forwarded (RFC 7239, section 4): elements with commas
// between, each of pairs with semicolons between; the pair for=… names the hop.
func forwarded(line string) (rest string, a netip.Addr, ok, found bool) {
	comma := lastComma(line)
	element := trimSpace(line[comma+1:])
	if comma > 0 {
		rest = line[:comma]
	}
	if element == "" {
		return rest, a, false, false
	}
	node, ok := forParameter(element)
	if ok {
		a, ok = parseNode(node)
	}
	return rest, a, ok, true
}

// lastComma returns the place of the last comma outside quotes, -1 for none.
// It looks from the right: what a client has written on the left, an open
// quote for instance, cannot hide what the proxies have added.
func lastComma(line string) int {
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

// forParameter returns the value of the element's parameter "for". It is not
// ok where there is none, or where the element does not follow the grammar, in
// which no parameter may stand twice.
func forParameter(element string) (value string, ok bool) {
	names := make([]string, 0, 8)
	for element != "" {
		if element[0] == ';' { // an empty pair
			element = element[1:]
			continue
		}
		n := tokenLength(element)
		if n == 0 || n == len(element) || element[n] != '=' || len(names) == cap(names) {
			return "", false
		}
		name := element[:n]
		for _, other := range names {
			if strings.EqualFold(other, name) {
				return "", false
			}
		}
		names = append(names, name)
		v, rest, valid := parameterValue(element[n+1:])
		if !valid || rest != "" && rest[0] != ';' {
			return "", false
		}
		if strings.EqualFold(name, "for") {
			value, ok = v, true
		}
		element = rest
	}
	return value, ok
}

// parameterValue reads a token or a quoted string (RFC 9110, section 5.6).
func parameterValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		n := tokenLength(s)
		return s[:n], s[n:], n > 0
	}
	var unescaped []byte
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			if unescaped == nil {
				return s[1:i], s[i+1:], true
			}
			return string(unescaped), s[i+1:], true
		case c == '\\':
			if i++; i == len(s) {
				return "", "", false
			}
			if unescaped == nil {
				unescaped = append(make([]byte, 0, len(s)), s[1:i-1]...)
			}
			unescaped = append(unescaped, s[i])
		case c < ' ' && c != '\t' || c == 0x7f:
			return "", "", false
		default:
			if unescaped != nil {
				unescaped = append(unescaped, c)
			}
		}
	}
	return "", "", false
}

// tokenLength returns how many characters of a token s begins with.
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

// parseNode reads a node (RFC 7239, section 6): an IPv4 address, or an IPv6
// address in brackets, with or without a port. The identifiers "unknown" and
// _obfuscated ones are no addresses.
func parseNode(s string) (netip.Addr, bool) {
	if !strings.HasPrefix(s, "[") && strings.Count(s, ":") > 1 {
		return netip.Addr{}, false
	}
	return parseHop(s)
}
