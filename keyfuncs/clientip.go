package keyfuncs

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
)

// unknownClient is the key of requests whose peer has no IP address, such as a peer that connects
// through a Unix socket. All of them share one quota.
const unknownClient = "unknown"

// DefaultIPv6Prefix is the number of bits of an IPv6 address that tell clients apart, unless the
// option IPv6Prefix is given. A subscriber has a /64 at least (RFC 6177, RFC 4291 section 2.5.4),
// and can use every address in it.
const DefaultIPv6Prefix = 64

// clientIP is the configuration of a ClientIP.
type clientIP struct {
	trusted    []netip.Prefix
	header     string // "": no proxies
	hops       int    // of BehindHops; 0: the addresses in trusted are the proxies
	prefix     int
	trustUnix  bool
	onFallback func(r core.Request, why error)
	looked     atomic.Uint32 // the number of requests that warnIgnored has looked at, or warned
	portless   atomic.Bool   // warnPortless has written its line
}

// ClientIP returns a key function for the client's address. It panics if an option is invalid, as
// template.Must does. [NewClientIP] describes the key. It returns an error instead, for options
// that are not constants.
func ClientIP(opts ...ClientIPOption) core.KeyFunc {
	return core.Must(NewClientIP(opts...))
}

// NewClientIP returns a key function for the client's address. Without options, the key is the
// address of the connection's peer, and headers do not change it. If the application is behind
// proxies, the option [Behind] names the header with the client's address and the proxies that
// write it; [BehindHops] is for proxies of which only the number is known:
//
//	keyfuncs.ClientIP(keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8"))
//
// X-Forwarded-For and Forwarded (RFC 7239) list hops. They are read from the right, over all lines
// of the header. The first hop that is not a trusted proxy is the client; if all hops are trusted,
// the leftmost is. Empty parts are skipped. Reading stops at any other part that is not an address,
// after 32 hops and after 4 KiB: the client is the last hop read. Any other header, such as
// X-Real-IP, must have one line with one address. Otherwise, and if the header is missing, the key
// is the address of the peer.
//
// Ports, brackets and zones are not part of the key. IPv4 addresses that are mapped into IPv6 or
// translated (64:ff9b::/96, RFC 6052) become IPv4 addresses. IPv6 addresses are cut to IPv6Prefix,
// except link-local addresses. The key of a peer without an IP address is "unknown".
//
// The limiter's log (see [core.Config]) gets one line if one of the first 64 requests comes from an
// unlisted peer with a header such as X-Forwarded-For. Either the peer is your proxy, and all its
// clients share one limit, or a client made the header up. The log also gets one line if the peer's
// address has no port: a middleware before the limiter has replaced it by a header.
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
	if host, port, _ := strings.Cut(r.RemoteAddr(), ":"); strings.Contains(host, ".") && isAddr(host) && isPort(port) { // IPv4, as nearly all are
		c.warnIgnored(r)
		return append(dst, host...), nil
	}
	a := c.peer(r)
	c.warnIgnored(r)
	return c.appendKey(dst, a), nil
}

func isAddr(s string) bool { _, err := netip.ParseAddr(s); return err == nil }

func isPort(s string) bool { _, err := strconv.ParseUint(s, 10, 16); return err == nil }

// peer returns the address of the connection's peer.
func (c *clientIP) peer(r core.Request) netip.Addr {
	a, port := parsePeer(r.RemoteAddr())
	switch {
	case !a.IsValid():
		if !c.trustUnix {
			c.fallBack(r, errNoAddress)
		}
	case !port:
		c.warnPortless(r)
	}
	return a
}

// appendKey appends the key of an address. The address is not valid if the peer has none.
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

// isListed reports whether an address is that of a listed proxy.
func (c *clientIP) isListed(a netip.Addr) bool {
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

// isProxy reports whether an address is that of a proxy, whose entry in the header is trusted. hops
// is the number of hops that have been read from the header.
func (c *clientIP) isProxy(a netip.Addr, hops int) bool {
	if c.hops > 0 {
		return hops < c.hops
	}
	return c.isListed(a)
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
	if !c.isListed(peer) {
		c.warnIgnored(r)
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

// ClientIPOption is an option of [ClientIP] and [NewClientIP]: [Behind], [BehindHops], [IPv6Prefix]
// or [OnFallback].
type ClientIPOption func(c *clientIP) error

// UnixSocket is an entry in the list of proxies of [Behind]. It trusts every peer that connects
// through a Unix socket.
const UnixSocket = "unix"

// Behind names the header in which proxies write the client's address, and the proxies that are
// trusted. proxies has one or more addresses, prefixes such as "10.0.0.0/8", or [UnixSocket]. A
// prefix of 0 bits is an error. The header of any other peer is ignored, even if the peer has a
// private address. Without Behind and BehindHops, no header is read.
//
// Choose the header that every listed proxy sets or appends to, whatever the client has sent. Only
// one header is read: a second Behind or BehindHops is an error.
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

// BehindHops sets the number of proxies that every request passes: 1 to 32. Each proxy must append
// the address of its own peer to the header. The client is then the hops-th address from the right,
// whatever the address of the peer is. header must be X-Forwarded-For or Forwarded, because no
// other header lists hops.
//
// Use BehindHops only if the addresses of the proxies are not known. [Behind] is safer: a client
// that can reach the application through fewer proxies can write the address that BehindHops reads.
// If the header has fewer than hops addresses, the key is the address of the peer: see
// [OnFallback].
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
	return p, true
}

// IPv6Prefix sets how many bits of an IPv6 address tell clients apart: 32 to 128. The default is
// [DefaultIPv6Prefix], 64.
func IPv6Prefix(bits int) ClientIPOption {
	return func(c *clientIP) error {
		if bits < 32 || bits > 128 {
			return fmt.Errorf("%w: IPv6Prefix: %d: must be from 32 to 128", core.ErrConfig, bits)
		}
		c.prefix = bits
		return nil
	}
}

// OnFallback sets a function that is called if the key is not the client's address: the header of a
// trusted proxy is missing, malformed or too long, or the peer has no IP address. The default is
// nil: no function is called. f may be called concurrently, and several times for a request. The
// text of why is safe to log: it contains nothing of the header.
func OnFallback(f func(r core.Request, why error)) ClientIPOption {
	return func(c *clientIP) error {
		c.onFallback = f
		return nil
	}
}

// forwardedHeaders are the headers in which proxies write a client's address.
var forwardedHeaders = []string{
	"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Cf-Connecting-Ip", "True-Client-Ip", "Fastly-Client-Ip",
	"Fly-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Azure-Clientip", "X-Appengine-Remote-Addr",
}

const (
	firstLooks = 64      // the number of requests whose headers warnIgnored reads
	warned     = 1 << 31 // looked after a warning has been logged
)

// warnIgnored is called for a request whose peer is not listed as a proxy. If the request has a
// header in which proxies write addresses, warnIgnored writes one line to the log. The line
// contains nothing that was sent, because a client may have made the header up.
func (c *clientIP) warnIgnored(r core.Request) {
	if c.looked.Load() >= firstLooks {
		return
	}
	c.looked.Add(1)
	log := requestlog.Of(r)
	if !log.Enabled(r.Context(), slog.LevelWarn) { // a replay notes which headers are read
		return
	}
	names := forwardedHeaders
	if c.header != "" {
		names = []string{c.header}
	}
	for _, name := range names {
		if len(r.HeaderValues(name)) == 0 || c.looked.Swap(warned) >= warned {
			continue
		}
		log.Warn("keyfuncs: ClientIP ignores a header in which proxies write the client's address: the peer is not listed as a proxy. "+
			"If the peer is a proxy of yours, every client behind the proxy shares one limit: write keyfuncs.Behind with the header and the proxy's address. "+
			"If the peer is not a proxy, a client has made the header up", slog.String("header", name))
		return
	}
}

// warnPortless is called for a request whose peer has an address without a port. It writes one line
// to the log, and keeps warnIgnored from writing a false one.
func (c *clientIP) warnPortless(r core.Request) {
	if !c.portless.CompareAndSwap(false, true) {
		return
	}
	c.looked.Store(warned)
	requestlog.Of(r).Warn("keyfuncs: ClientIP found an address without a port in RemoteAddr: it is not the connection's. A middleware before the limiter, " +
		"such as RealIP of chi or go-pkgz/rest, has written a header into it, so that a client can choose its key. " +
		"Mount the limiter before that middleware, and list your proxy with keyfuncs.Behind")
}
