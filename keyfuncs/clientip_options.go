package keyfuncs

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/floodgate-go/floodgate/core"
)

// ClientIPOption is an option of [ClientIP]: one of [Behind], [IPv6Prefix] and
// [OnFallback].
type ClientIPOption func(c *clientIP) error

// UnixSocket is a proxy of [Behind]: every peer that connects through a Unix
// socket.
const UnixSocket = "unix"

// Behind says that the application is behind proxies, and in which header they
// write the client's address. proxies are the addresses of the proxies, or
// prefixes such as "10.0.0.0/8", or [UnixSocket]; at least one. The header of
// any other peer is ignored: no proxy is trusted that is not listed, not even
// one with a private address.
//
// Exactly one header is read, so that Behind can be given once. Choose the one
// that every listed proxy sets or appends to, whatever the client has sent.
func Behind(header string, proxies ...string) ClientIPOption {
	return func(c *clientIP) error {
		var errs []error
		bad := func(value any, why string) {
			errs = append(errs, fmt.Errorf("%w: Behind: %q: %s", core.ErrConfig, value, why))
		}
		switch {
		case header == "" || tokenLength(header) != len(header):
			bad(header, "is no name of a header (RFC 9110, section 5.1), such as X-Forwarded-For")
		case c.header != "":
			bad(header, "there is a header already, "+c.header+": exactly one is read")
		default:
			c.header = header
		}
		if len(proxies) == 0 {
			bad(header, "which proxies write this header? Add their addresses or prefixes, such as 10.0.0.0/8")
		}
		for _, text := range proxies {
			if text == UnixSocket {
				c.trustUnix = true
				continue
			}
			p, ok := parsePrefix(text)
			if !ok {
				bad(text, `want a proxy's address, a prefix such as 10.0.0.0/8, or "unix"`)
				continue
			}
			c.trusted = append(c.trusted, p)
		}
		return errors.Join(errs...)
	}
}

func parsePrefix(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, false
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	if a := p.Addr(); a.Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, false
		}
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked(), true
}

// IPv6Prefix sets how many bits of an IPv6 address tell clients apart, 32 to
// 128; [DefaultIPv6Prefix] if it is not given.
func IPv6Prefix(bits int) ClientIPOption {
	return func(c *clientIP) error {
		if bits < 32 || bits > 128 {
			return fmt.Errorf("%w: IPv6Prefix: %d: must be from 32 to 128", core.ErrConfig, bits)
		}
		c.prefix = bits
		return nil
	}
}

// OnFallback sets a function that is told when a request's key is not what it
// should be: the header of a trusted proxy is missing or malformed, or the peer
// has no address. It is called for each key that is made, which may be several
// for a request, and may be called concurrently. The error's text is safe to
// log: it has nothing of the header in it.
func OnFallback(f func(r core.Request, why error)) ClientIPOption {
	return func(c *clientIP) error {
		c.onFallback = f
		return nil
	}
}
