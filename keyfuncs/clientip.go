package keyfuncs

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// unknownClient is the key of requests whose peer has no address: those that
// come through a Unix socket, for instance. They share one quota.
const unknownClient = "unknown"

// DefaultIPv6Prefix is the part of an IPv6 address, in bits, that tells clients
// apart: a subscriber has a /64 at the least (RFC 6177, RFC 4291 section
// 2.5.4), and can use any address of it.
const DefaultIPv6Prefix = 64

// clientIP is the configuration of a ClientIP. Options are given it as their
// request (see ClientIPOption); it is never used as one.
type clientIP struct {
	core.Request
	trusted    []netip.Prefix
	header     string
	prefix     int
	trustUnix  bool
	onFallback func(r core.Request, why error)
	errs       []error
}

// ClientIPOption is an option of [ClientIP]: one of [TrustedProxies],
// [IPv6Prefix], [TrustUnixSocket] and [OnFallback], or a [Header]. It is a
// function of a key function's form, so that Header can be both.
type ClientIPOption func(dst []byte, r core.Request) ([]byte, error)

var errNotAKey = errors.New("keyfuncs: an option of ClientIP is no key function")

func option(f func(c *clientIP) error) ClientIPOption {
	return func(dst []byte, r core.Request) ([]byte, error) {
		c, ok := r.(*clientIP)
		if !ok {
			return dst, errNotAKey
		}
		return dst, f(c)
	}
}

// TrustedProxies says which peers are proxies of yours, whose header is to be
// believed: addresses, or prefixes such as "10.0.0.0/8". Nothing is trusted
// that is not listed, private addresses included.
func TrustedProxies(prefixes ...string) ClientIPOption {
	return option(func(c *clientIP) error {
		var errs []error
		for _, text := range prefixes {
			p, ok := parsePrefix(text)
			if !ok {
				errs = append(errs, fmt.Errorf("%w: TrustedProxies: %q: want an address or a prefix such as 10.0.0.0/8", core.ErrConfig, text))
				continue
			}
			c.trusted = append(c.trusted, p)
		}
		return errors.Join(errs...)
	})
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
// 128; [DefaultIPv6Prefix] where it is not given.
func IPv6Prefix(bits int) ClientIPOption {
	return option(func(c *clientIP) error {
		if bits < 32 || bits > 128 {
			return fmt.Errorf("%w: IPv6Prefix: %d: must be from 32 to 128", core.ErrConfig, bits)
		}
		c.prefix = bits
		return nil
	})
}

// TrustUnixSocket says that what connects through a Unix socket is a proxy of
// yours. Without it all such requests share one quota.
func TrustUnixSocket() ClientIPOption {
	return option(func(c *clientIP) error {
		c.trustUnix = true
		return nil
	})
}

// OnFallback sets a function that is told when a request's key is not what it
// should be: the header of a trusted proxy is missing or malformed, or the peer
// has no address. It is called for each key that is made, which may be several
// for a request, and may be called concurrently. The error's text is safe to
// log: it has nothing of the header in it.
func OnFallback(f func(r core.Request, why error)) ClientIPOption {
	return option(func(c *clientIP) error {
		c.onFallback = f
		return nil
	})
}

func (c *clientIP) useHeader(name string) error {
	if tokenLength(name) != len(name) {
		return fmt.Errorf("%w: Header: %q: is no name of a header (RFC 9110, section 5.1)", core.ErrConfig, name)
	}
	if c.header != "" {
		return fmt.Errorf("%w: Header: %q: there is one already, %q: exactly one is believed", core.ErrConfig, name, c.header)
	}
	c.header = name
	return nil
}

// ClientIP is [NewClientIP] for options that are written in the program: it
// panics where they are wrong, as template.Must does.
func ClientIP(opts ...ClientIPOption) core.KeyFunc {
	return core.Must(NewClientIP(opts...))
}

// NewClientIP returns a key function for the client's address.
//
// Without options that is the address of the connection's peer, whatever the
// request's headers say. Behind proxies, TrustedProxies says which peers are
// to be believed, and [Header] which one header they write:
//
//	keyfuncs.ClientIP(keyfuncs.TrustedProxies("10.0.0.0/8"), keyfuncs.Header("X-Forwarded-For"))
//
// X-Forwarded-For, a list, and Forwarded (RFC 7239) are read from the right,
// over all lines of the header: every hop that is a trusted proxy vouches for
// the one before, and the first that is none is the client. Any other header,
// such as X-Real-IP or CF-Connecting-IP, has to hold one address. A part that
// is no address ends the walk at the hop that was last vouched for; so do 32
// hops and 4 KiB. No other header is ever tried instead.
//
// Ports, brackets and zones do not count. IPv4 addresses that are mapped into
// IPv6 (RFC 4291, section 2.5.5.2) or translated (64:ff9b::/96, RFC 6052) are
// IPv4 addresses. IPv6 addresses are cut to IPv6Prefix, link-local ones
// excepted. A peer without an address has the key "unknown".
//
// The error wraps [core.ErrConfig] and names the option and its value.
func NewClientIP(opts ...ClientIPOption) (core.KeyFunc, error) {
	c := &clientIP{prefix: DefaultIPv6Prefix}
	for _, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("%w: ClientIP: an option is nil", core.ErrConfig)
		}
		if _, err := opt(nil, c); err != nil {
			c.errs = append(c.errs, err)
		}
	}
	switch proxies := len(c.trusted) > 0 || c.trustUnix; {
	case c.header != "" && !proxies && len(c.errs) == 0:
		c.errs = append(c.errs, fmt.Errorf("%w: Header: %q: is believed from nobody without TrustedProxies", core.ErrConfig, c.header))
	case c.header == "" && proxies:
		c.errs = append(c.errs, fmt.Errorf("%w: TrustedProxies: which Header they write is missing", core.ErrConfig))
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	switch {
	case c.header == "":
		return c.peerKey, nil
	case strings.EqualFold(c.header, "X-Forwarded-For"):
		return c.walkKey(forwardedFor), nil
	case strings.EqualFold(c.header, "Forwarded"):
		return c.walkKey(forwarded), nil
	default:
		return c.singleKey, nil
	}
}

// peerKey keys by the connection's peer.
func (c *clientIP) peerKey(dst []byte, r core.Request) ([]byte, error) {
	return c.appendKey(dst, c.peer(r)), nil
}

// peer returns the address of the connection's peer.
func (c *clientIP) peer(r core.Request) netip.Addr {
	a := parsePeer(r.RemoteAddr())
	if !a.IsValid() && !c.trustUnix {
		c.fallBack(r, errNoAddress)
	}
	return a
}

// appendKey appends the key of an address, which is not valid for a peer that
// has none.
func (c *clientIP) appendKey(dst []byte, a netip.Addr) []byte {
	a = fromNAT64(a)
	switch {
	case !a.IsValid():
		return append(dst, unknownClient...)
	case a.Is4() || c.prefix == 128 || a.IsLinkLocalUnicast():
		return a.AppendTo(dst)
	default:
		return netip.PrefixFrom(a, c.prefix).Masked().AppendTo(dst)
	}
}

// believes says whether a hop vouches for the one before it.
func (c *clientIP) believes(a netip.Addr) bool {
	if !a.IsValid() {
		return c.trustUnix
	}
	for _, p := range c.trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func (c *clientIP) fallBack(r core.Request, why error) {
	if c.onFallback != nil {
		c.onFallback(r, why)
	}
}

var (
	errNoAddress     = errors.New("keyfuncs: the peer has no address")
	errHeaderMissing = errors.New("keyfuncs: the trusted proxy's header is missing")
	errHeaderBad     = errors.New("keyfuncs: the trusted proxy's header has a part that is no address")
	errHeaderLong    = errors.New("keyfuncs: the trusted proxy's header has more than 32 hops or 4 KiB")
)

// singleKey keys by a header that holds one address.
func (c *clientIP) singleKey(dst []byte, r core.Request) ([]byte, error) {
	peer := c.peer(r)
	if !c.believes(peer) {
		return c.appendKey(dst, peer), nil
	}
	lines := r.HeaderValues(c.header)
	if len(lines) == 0 {
		c.fallBack(r, errHeaderMissing)
		return c.appendKey(dst, peer), nil
	}
	if len(lines) == 1 {
		if a, ok := parseHop(trimSpace(lines[0])); ok {
			return c.appendKey(dst, a), nil
		}
	}
	c.fallBack(r, errHeaderBad)
	return c.appendKey(dst, peer), nil
}
