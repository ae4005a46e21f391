package expression

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/floodgate-go/floodgate/policy/internal/words"
)

func contain(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// ParsePrefix reads a prefix, or an address that stands for itself.
func ParsePrefix(text string) (netip.Prefix, error) {
	want := fmt.Errorf("%q: want an address or a prefix such as 10.0.0.0/8", words.Shorten(text))
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, want
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, want
	}
	if p.Masked() != p {
		return netip.Prefix{}, fmt.Errorf("%q: has bits behind its length: want %v", words.Shorten(text), p.Masked())
	}
	return p, nil
}
