package keyfuncs

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// ClientIPOption is an option of [ClientIP]: one of [Behind], [BehindHops],
// [IPv6Prefix] and [OnFallback].
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
		errs = append(errs, c.read("Behind", header))
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
			if p.Bits() == 0 {
				bad(text, "trusts every client to write its own address: list the proxies, such as 10.0.0.0/8, or use BehindHops if only their number is known")
				continue
			}
			c.trusted = append(c.trusted, p)
		}
		return errors.Join(errs...)
	}
}

// BehindHops says that every request comes through hops proxies, 1 to 32, each
// of which appends the address of its own peer to the header. The client is then
// the hops-th address from the right, whoever the peer is. header is
// X-Forwarded-For or Forwarded: no other header lists hops.
//
// It is for those who know how many proxies there are and not their addresses.
// [Behind] is safer: if a client can reach the application through fewer
// proxies, it can write the address that BehindHops reads. A request with fewer
// addresses in the header has the key of its peer; see [OnFallback].
func BehindHops(header string, hops int) ClientIPOption {
	return func(c *clientIP) error {
		errs := []error{c.read("BehindHops", header)}
		if !strings.EqualFold(header, "X-Forwarded-For") && !strings.EqualFold(header, "Forwarded") {
			errs = append(errs, fmt.Errorf("%w: BehindHops: %q: must be X-Forwarded-For or Forwarded: only these list hops", core.ErrConfig, header))
		}
		if hops < 1 || hops > maxHops {
			errs = append(errs, fmt.Errorf("%w: BehindHops: %d hops: must be from 1 to %d: the number of proxies that a request comes through", core.ErrConfig, hops, maxHops))
		}
		c.hops = hops
		return errors.Join(errs...)
	}
}

// read sets the header that proxies write.
func (c *clientIP) read(option, header string) error {
	switch {
	case header == "" || tokenLength(header) != len(header):
		return fmt.Errorf("%w: %s: %q: is no name of a header (RFC 9110, section 5.1), such as X-Forwarded-For", core.ErrConfig, option, header)
	case c.header != "":
		return fmt.Errorf("%w: %s: %q: there is a header already, %s: exactly one is read", core.ErrConfig, option, header, c.header)
	}
	c.header = header
	return nil
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

// OnFallback sets a function that is called if a request has another key than it
// should have: the header of a trusted proxy is missing or malformed, or the peer
// has no address. It may be called several times for a request, and concurrently.
// The text of the error is safe to log: it has nothing of the header in it.
func OnFallback(f func(r core.Request, why error)) ClientIPOption {
	return func(c *clientIP) error {
		c.onFallback = f
		return nil
	}
}
