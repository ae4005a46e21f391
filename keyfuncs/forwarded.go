package keyfuncs

import (
	"net/netip"
	"strings"
)

// parseElement returns the address of a hop in the header Forwarded (RFC 7239, section 4).
// Commas separate the elements of the header, and semicolons separate the pairs of an
// element. The pair for=… has the hop's address.
func parseElement(element string) (a netip.Addr, ok bool) { return parseNode(forParameter(element)) }

// lastUnquotedComma returns the index of the last comma outside quotes, or -1.
// It reads from the right, so that text of the client on the left, such as a quote that
// is not closed, cannot hide the elements that proxies have added on the right.
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

// forParameter returns the value of the element's parameter "for", or "" if the element
// has no such parameter or does not follow the grammar. In the grammar, no parameter may
// be given twice.
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

// parameterValue returns the token or the quoted string (RFC 9110, section 5.6) with
// which s begins, and the rest of s.
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

// parseNode parses a node (RFC 7239, section 6): an IPv4 address, or an IPv6 address in
// brackets, with or without a port. The identifier "unknown" and obfuscated identifiers
// are not addresses.
func parseNode(s string) (netip.Addr, bool) {
	if !strings.HasPrefix(s, "[") && strings.Count(s, ":") > 1 {
		return netip.Addr{}, false
	}
	return parseHop(s)
}
