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

// clientIP is the configuration of a ClientIP.
type clientIP struct {
	trusted    []netip.Prefix
	header     string // "": no proxies
	hops       int    // of BehindHops; 0: trusted says which hops are proxies
	prefix     int
	trustUnix  bool
	onFallback func(r core.Request, why error)
	unlisted   unlisted
}

// ClientIP is [NewClientIP] for options that are written in the program: it
// panics if an option is invalid, as template.Must does.
func ClientIP(opts ...ClientIPOption) core.KeyFunc {
	return core.Must(NewClientIP(opts...))
}

// NewClientIP returns a key function for the client's address.
//
// Without options that is the address of the connection's peer, whatever the
// request's headers say. Behind proxies, [Behind] says which header to read and
// which peers write it:
//
//	keyfuncs.ClientIP(keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
//
// [BehindHops] is for those who know only how many proxies there are.
//
// If a peer that is not listed sends a header in which proxies write addresses,
// the header is ignored, and the log of the limiter (see [core.Config]) says so
// once for each key function: either the peer is a proxy of yours, whose clients
// then all share one limit, or a client has made the header up.
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
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, fmt.Errorf("%w: ClientIP: an option is nil", core.ErrConfig))
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
		return c.walkKey(forwardedFor), nil
	case strings.EqualFold(c.header, "Forwarded"):
		return c.walkKey(forwarded), nil
	default:
		return c.singleKey, nil
	}
}

// peerKey keys by the connection's peer.
func (c *clientIP) peerKey(dst []byte, r core.Request) ([]byte, error) {
	a := c.peer(r)
	c.ignore(r)
	return c.appendKey(dst, a), nil
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

// vouches says whether an address, which so many hops of the header are
// before, is a proxy's: it then vouches for the next hop.
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
	errNoAddress     = errors.New("keyfuncs: the peer has no address")
	errHeaderMissing = errors.New("keyfuncs: the trusted proxy's header is missing")
	errHeaderBad     = errors.New("keyfuncs: the trusted proxy's header has a part that is no address")
	errHeaderShort   = errors.New("keyfuncs: the header has fewer addresses than there are proxies")
	errHeaderLong    = errors.New("keyfuncs: the trusted proxy's header has more than 32 hops or 4 KiB")
)

// singleKey keys by a header that holds one address.
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
