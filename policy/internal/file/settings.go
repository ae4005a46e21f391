package file

import (
	"fmt"
	"net/netip"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// clientIP is where the client's address comes from.
type clientIP struct {
	at      value
	proxies []netip.Prefix
	header  string
	bits    int // of an IPv6 address
	broken  bool
}

func newClientIP(v value) clientIP { return clientIP{at: v, bits: keyfuncs.DefaultIPv6Prefix} }

func clientMapping() *mapping[clientIP] {
	return &mapping[clientIP]{
		name: "client-ip", want: "a mapping with trusted-proxies and header", about: "Where the client's address comes from.",
		fields: []field[clientIP]{
			{
				name: "trusted-proxies", example: "[10.0.0.0/8]",
				about: "The addresses of your proxies; the header is believed only if one of them sends it.",
				value: set(prefixes(), func(c *clientIP) *[]netip.Prefix { return &c.proxies }),
			}, {
				name: "header", example: "X-Forwarded-For",
				about: "The header in which these proxies write the client's address.",
				value: set(headerName(), func(c *clientIP) *string { return &c.header }),
			}, {
				name: "ipv6-prefix", initial: "64", example: "56",
				about: "The number of bits of an IPv6 address that identify a client.",
				value: set(whole[int](32, 128), func(c *clientIP) *int { return &c.bits }),
			},
		},
		together: "`trusted-proxies` and `header` require each other.",
		check: func(m filled, c *clientIP) {
			if m.has("trusted-proxies") != m.has("header") {
				m.r.bad(m.value, "trusted-proxies and header are both needed, or neither", "a header is believed from listed proxies alone")
			}
			c.broken = !m.fine()
		},
	}
}

// headerName is the name of a header.
func headerName() kind[string] {
	return checked("the name of a header such as X-Forwarded-For", func(s string) (problem, hint string) {
		if err := expression.HeaderName(s); err != nil {
			return err.Error(), ""
		}
		return "", ""
	})
}

// client makes the sources of the client's address.
func (r *reader) client(f *Spec) {
	s, c := f.Sources, f.client
	s.IP, s.Address = keyfuncs.ClientIP(), keyfuncs.ClientIP(keyfuncs.IPv6Prefix(128))
	if c.broken {
		return
	}
	var opts []keyfuncs.ClientIPOption
	if c.header != "" {
		var proxies []string
		for _, p := range c.proxies {
			proxies = append(proxies, p.String())
		}
		opts = append(opts, keyfuncs.Behind(c.header, proxies...))
	}
	with := func(bits int) []keyfuncs.ClientIPOption {
		return append(opts[:len(opts):len(opts)], keyfuncs.IPv6Prefix(bits))
	}
	ip, err := keyfuncs.NewClientIP(with(c.bits)...)
	if err != nil {
		r.bad(c.at, words.Reason(err), "")
		return
	}
	s.IP, s.Address = ip, keyfuncs.ClientIP(with(128)...)
}

// prefixes is a list of addresses and prefixes.
func prefixes() kind[[]netip.Prefix] {
	one := kind[netip.Prefix]{always("an address or a prefix", object{{"type", "string"}, {"pattern", "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$"}}), func(r *reader, v value) (netip.Prefix, bool) {
		text, ok := r.text(v, "a prefix such as 10.0.0.0/8")
		if !ok {
			return netip.Prefix{}, false
		}
		p, err := expression.ParsePrefix(text)
		if err != nil {
			r.bad(v, err.Error(), "")
		}
		return p, err == nil
	}}
	all := list(one, 10_000, "a list of prefixes such as 10.0.0.0/8", netip.Prefix.String)
	of := all.shape
	all.shape = shape{"a list of addresses and prefixes", func(d *definitions) object { return d.ref("prefixes", func() object { return of.schema(d) }) }, nil}
	return all
}

// Local has the settings of the process.
type Local struct {
	MaxKeys         int // of local counters
	MaxWaitingOfKey int // requests
}

func newLocal() Local {
	return Local{MaxKeys: core.DefaultMaxKeys, MaxWaitingOfKey: 100}
}

func localMapping() *mapping[Local] {
	none := newLocal()
	return &mapping[Local]{
		name: "local", want: "a mapping with max-keys", about: "Settings of this process.",
		fields: []field[Local]{
			{
				name: "max-keys", initial: fmt.Sprint(none.MaxKeys), example: "500000",
				about: "The largest number of keys that are held at a time; beyond it, new keys evict others.",
				value: set(whole[int](1, 1<<31-1), func(l *Local) *int { return &l.MaxKeys }),
			}, {
				name: "max-waiting-of-key", initial: fmt.Sprint(none.MaxWaitingOfKey), example: "20",
				about: "The largest number of requests that wait at a time for one key of a rule, as `wait` lets them, and a hundredth of those that wait for all keys.",
				value: set(whole[int](1, 1_000_000), func(l *Local) *int { return &l.MaxWaitingOfKey }),
			},
		},
	}
}
