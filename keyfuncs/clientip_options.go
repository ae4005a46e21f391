package keyfuncs

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// ClientIPOption is an option of [ClientIP] and [NewClientIP]: [Behind], [BehindHops],
// [IPv6Prefix] or [OnFallback].
type ClientIPOption func(c *clientIP) error

// UnixSocket is an entry in the list of proxies of [Behind]. It trusts every peer that
// connects through a Unix socket.
const UnixSocket = "unix"

// Behind names the header in which proxies write the client's address, and the proxies
// that are trusted. Each of proxies is an address, a prefix such as "10.0.0.0/8", or
// [UnixSocket]. At least one is required, and a prefix of 0 bits is an error. The header
// of any other peer is ignored, even if the peer has a private address. Without Behind
// and BehindHops, no header is read.
//
// Choose the header that every listed proxy sets or appends to, whatever the client has
// sent. Only one header is read: a second Behind or BehindHops is an error.
func Behind(header string, proxies ...string) ClientIPOption {
	return func(c *clientIP) error {
		var errs []error
		bad := func(value any, why string) {
			errs = append(errs, fmt.Errorf("%w: Behind: %q: %s", core.ErrConfig, value, why))
		}
		errs = append(errs, c.read("Behind", header))
		if len(proxies) == 0 {
			bad(header, "no proxies: list the addresses or prefixes of the proxies that write this header, such as 10.0.0.0/8")
		}
		for _, text := range proxies {
			switch p, ok := parsePrefix(text); {
			case text == UnixSocket:
				c.trustUnix = true
			case !ok:
				bad(text, `must be a proxy's address, a prefix such as 10.0.0.0/8, or "unix"`)
			case p.Bits() == 0:
				bad(text, "lets every client choose its own address: list the proxies, such as 10.0.0.0/8, or use BehindHops if only their number is known")
			default:
				c.trusted = append(c.trusted, p)
			}
		}
		return errors.Join(errs...)
	}
}

// BehindHops sets the number of proxies through which every request comes: hops is 1 to
// 32. Each proxy must append the address of its own peer to the header. The client is
// then the hops-th address from the right, whatever the address of the peer is. header
// must be X-Forwarded-For or Forwarded, because no other header lists hops.
//
// Use BehindHops only if the addresses of the proxies are not known. [Behind] is safer:
// a client that can reach the application through fewer proxies can write the address
// that BehindHops reads. If the header has fewer than hops addresses, the key is the
// address of the peer: see [OnFallback].
func BehindHops(header string, hops int) ClientIPOption {
	return func(c *clientIP) error {
		errs := []error{c.read("BehindHops", header)}
		if !strings.EqualFold(header, "X-Forwarded-For") && !strings.EqualFold(header, "Forwarded") {
			errs = append(errs, fmt.Errorf("%w: BehindHops: %q: must be X-Forwarded-For or Forwarded: no other header lists hops", core.ErrConfig, header))
		}
		if hops < 1 || hops > maxHops {
			errs = append(errs, fmt.Errorf("%w: BehindHops: %d hops: must be from 1 to %d: the number of proxies that a request comes through", core.ErrConfig, hops, maxHops))
		}
		c.hops = hops
		return errors.Join(errs...)
	}
}

// read sets the header that is read.
func (c *clientIP) read(option, header string) error {
	switch {
	case header == "" || tokenLength(header) != len(header):
		return fmt.Errorf("%w: %s: %q: must be the name of a header (RFC 9110, section 5.1), such as X-Forwarded-For", core.ErrConfig, option, header)
	case c.header != "":
		return fmt.Errorf("%w: %s: %q: must be the only header, and another option names %s: write one Behind or one BehindHops", core.ErrConfig, option, header, c.header)
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

// IPv6Prefix sets how many bits of an IPv6 address tell clients apart: 32 to 128. The
// default is [DefaultIPv6Prefix], 64.
func IPv6Prefix(bits int) ClientIPOption {
	return func(c *clientIP) error {
		if bits < 32 || bits > 128 {
			return fmt.Errorf("%w: IPv6Prefix: %d: must be from 32 to 128", core.ErrConfig, bits)
		}
		c.prefix = bits
		return nil
	}
}

// OnFallback sets a function that is called if the key is not the client's address: the
// header of a trusted proxy is missing, malformed or too long, or the peer has no IP
// address. The default is nil: no function is called. f may be called concurrently, and
// several times for a request. The text of why is safe to log: it contains nothing of
// the header.
func OnFallback(f func(r core.Request, why error)) ClientIPOption {
	return func(c *clientIP) error {
		c.onFallback = f
		return nil
	}
}
