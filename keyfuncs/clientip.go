package keyfuncs

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
)

// unknownClient is the key of requests whose peer has no IP address, such as a peer
// that connects through a Unix socket. All of them share one quota.
const unknownClient = "unknown"

// DefaultIPv6Prefix is the number of bits of an IPv6 address that tell clients apart,
// unless the option IPv6Prefix is given. A subscriber has a /64 at least (RFC 6177, RFC
// 4291 section 2.5.4), and can use every address in it.
const DefaultIPv6Prefix = 64

// clientIP is the configuration of a ClientIP.
type clientIP struct {
	trusted    []netip.Prefix
	header     string // "": no proxies
	hops       int    // of BehindHops; 0: a hop in trusted is a proxy
	prefix     int
	trustUnix  bool
	onFallback func(r core.Request, why error)
	unlisted   unlisted
	portless   atomic.Bool // the log has the line about a peer without a port
}

// ClientIP returns a key function for the client's address. It panics if an option is
// invalid, as template.Must does. [NewClientIP] returns an error instead, for options
// that are not constants of the program; its comment describes the key.
func ClientIP(opts ...ClientIPOption) core.KeyFunc {
	return core.Must(NewClientIP(opts...))
}

// NewClientIP returns a key function for the client's address.
//
// Without options, the key is the address of the connection's peer. Headers do not
// change it. If the application is behind proxies, the option [Behind] names the header
// with the client's address and the proxies that write it:
//
//	keyfuncs.ClientIP(keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
//
// If only the number of proxies is known, use [BehindHops].
//
// If a peer that is not listed sends a header in which proxies write addresses, the
// key function ignores the header, and writes one line to the log of the limiter (see
// [core.Config]). Either the peer is a proxy of yours, and all its clients share one
// limit; or a client has made the header up.
//
// An address of the peer without a port is not the connection's: a middleware before the
// limiter has put a header into its place, so that clients can choose their keys. The key
// function uses it, and writes one line to that log.
//
// X-Forwarded-For and Forwarded (RFC 7239) list hops. They are read from the right,
// over all lines of the header. The first hop that is not a trusted proxy is the
// client; if all hops are trusted, the leftmost is. Empty parts are skipped (RFC 9110,
// section 5.6.1.2). Reading stops at another part that is not an address, after 32 hops
// and after 4 KiB; the last hop before that is then the client. Any other header, such as X-Real-IP or CF-Connecting-IP, must have one line
// with one address; otherwise the key is the address of the peer. If the header is
// missing, the key is the address of the peer too: no second header is tried.
//
// Ports, brackets and zones are not part of the key. IPv4 addresses that are mapped
// into IPv6 (RFC 4291, section 2.5.5.2) or translated (64:ff9b::/96, RFC 6052) become
// IPv4 addresses. IPv6 addresses are cut to IPv6Prefix, except link-local addresses.
// The key of a peer without an IP address is "unknown".
//
// The error wraps [core.ErrConfig] and names the option and its value.
func NewClientIP(opts ...ClientIPOption) (core.KeyFunc, error) {
	c := &clientIP{prefix: DefaultIPv6Prefix}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, fmt.Errorf("%w: ClientIP: an option is nil: write one such as keyfuncs.IPv6Prefix(56), or none", core.ErrConfig))
			continue
		}
		errs = append(errs, opt(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	switch {
	case c.header == "":
		return c.peerKey, nil
	case strings.EqualFold(c.header, "X-Forwarded-For"):
		return c.walkKey(lastComma, parseHop), nil
	case strings.EqualFold(c.header, "Forwarded"):
		return c.walkKey(lastUnquotedComma, parseElement), nil
	default:
		return c.singleKey, nil
	}
}

// peerKey is the key function for the address of the connection's peer.
func (c *clientIP) peerKey(dst []byte, r core.Request) ([]byte, error) {
	remote := r.RemoteAddr()
	if n := ipv4Host(remote); n > 0 { // nearly all requests
		c.ignore(r)
		return append(dst, remote[:n]...), nil
	}
	a := c.peerAt(r, remote)
	c.ignore(r)
	return c.appendKey(dst, a), nil
}

// peer returns the address of the connection's peer.
func (c *clientIP) peer(r core.Request) netip.Addr { return c.peerAt(r, r.RemoteAddr()) }

func (c *clientIP) peerAt(r core.Request, remote string) netip.Addr {
	a, port := parsePeer(remote)
	switch {
	case !a.IsValid():
		if !c.trustUnix {
			c.fallBack(r, errNoAddress)
		}
	case !port:
		c.withoutPort(r)
	}
	return a
}

// appendKey appends the key of an address. The address is not valid if the peer has
// none.
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

// believes reports whether an address is a listed proxy's.
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

// vouches reports whether an address is a proxy's, so that the next hop in the header is
// believed. hops is the number of hops that have been read from the header.
func (c *clientIP) vouches(a netip.Addr, hops int) bool {
	if c.hops > 0 {
		return hops < c.hops
	}
	return c.believes(a)
}

func (c *clientIP) fallBack(r core.Request, why error) {
	if c.onFallback != nil {
		c.onFallback(r, why)
	}
}

var (
	errNoAddress     = errors.New("keyfuncs: the connection's peer has no IP address")
	errHeaderMissing = errors.New("keyfuncs: the trusted proxy's header is missing")
	errHeaderBad     = errors.New("keyfuncs: the trusted proxy's header has a part that is no address, or two lines in place of one")
	errHeaderShort   = errors.New("keyfuncs: the header has fewer addresses than the number of proxies given to BehindHops")
	errHeaderLong    = errors.New("keyfuncs: the trusted proxy's header has more than 32 hops or 4 KiB")
)

// singleKey is the key function for a header that has one address.
func (c *clientIP) singleKey(dst []byte, r core.Request) ([]byte, error) {
	peer := c.peer(r)
	if !c.believes(peer) {
		c.ignore(r)
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
