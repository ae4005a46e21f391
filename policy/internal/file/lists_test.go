package file

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// The longest prefix that contains the address decides, wherever it is in its list.
func TestTheLongestPrefixDecides(t *testing.T) {
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	for _, c := range []struct {
		exempt, only, deny []netip.Prefix
		address            string
		want               Listed
	}{
		{prefixes("10.1.2.0/24", "10.0.0.0/8"), nil, prefixes("10.1.0.0/16"), "10.1.2.3", Exempted},
		{prefixes("10.0.0.0/8", "10.1.2.0/24"), nil, prefixes("10.1.0.0/16"), "10.1.2.3", Exempted},
		{prefixes("10.1.0.0/16"), nil, prefixes("10.1.2.0/24", "10.0.0.0/8"), "10.1.2.3", DenyListed},
		{prefixes("10.1.0.0/16"), nil, prefixes("10.0.0.0/8", "10.1.2.0/24"), "10.1.2.3", DenyListed},
		{prefixes("10.1.0.0/16"), nil, prefixes("10.0.0.0/8", "10.1.2.0/24"), "10.1.3.3", Exempted},
		{prefixes("10.1.2.3/32", "10.1.2.0/24"), nil, prefixes("10.1.2.0/31", "10.1.2.2/31"), "10.1.2.3", Exempted},
		{prefixes("0.0.0.0/0"), nil, nil, "192.0.2.1", Exempted},
		{nil, nil, prefixes("0.0.0.0/0"), "192.0.2.1", DenyListed},
		{prefixes("0.0.0.0/0"), nil, prefixes("192.0.2.0/24"), "192.0.2.1", DenyListed},
		{prefixes("::/0"), nil, prefixes("0.0.0.0/0"), "192.0.2.1", DenyListed},
		{prefixes("2001:db8::/32"), nil, prefixes("2001:db8:1::/48", "2001::/16"), "2001:db8:1::1", DenyListed},
		{prefixes("10.0.0.0/8"), nil, prefixes("10.1.0.0/16"), "192.0.2.1", Unlisted},
		{nil, prefixes("10.0.0.0/8", "192.0.2.0/24"), nil, "192.0.2.1", Unlisted},
		{nil, prefixes("10.0.0.0/8"), nil, "192.0.2.1", DenyListed},
		{nil, prefixes("0.0.0.0/0"), nil, "192.0.2.1", Unlisted},
		{nil, prefixes("10.0.0.0/8"), nil, "2001:db8::1", DenyListed},
		{nil, prefixes("10.0.0.0/8"), prefixes("10.1.0.0/16"), "10.1.2.3", DenyListed},
		{nil, prefixes("10.1.0.0/16"), prefixes("10.0.0.0/8"), "10.1.2.3", DenyListed},
		{prefixes("192.0.2.1/32"), prefixes("10.0.0.0/8"), nil, "192.0.2.1", DenyListed},
		{prefixes("10.1.2.0/24"), prefixes("10.0.0.0/8"), prefixes("10.1.0.0/16"), "10.1.2.3", Exempted},
		{prefixes("0.0.0.0/0"), nil, nil, "", Unlisted},
		{nil, nil, prefixes("0.0.0.0/0"), "", Unlisted},
		{nil, prefixes("0.0.0.0/0", "::/0"), nil, "", DenyListed},
	} {
		var address netip.Addr // a request may have none that can be read
		if c.address != "" {
			address = netip.MustParseAddr(c.address)
		}
		p := &Policy{Exempt: c.exempt, Only: c.only, Deny: c.deny}
		if got := p.Lists(address); got != c.want {
			t.Errorf("%q, exempt %v, only %v, deny %v: %d, want %d", c.address, c.exempt, c.only, c.deny, got, c.want)
		}
	}
}

// Whatever the lists are, their order changes nothing, and what is listed is what
// the longest of all prefixes says.
func TestTheOrderOfAListChangesNothing(t *testing.T) {
	seed := rand.Uint64() //nolint:gosec // it is a test's
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is a test's
	for range 500 {
		lists, longest, listName := [2][]netip.Prefix{}, -1, -1
		address := netip.AddrFrom4([4]byte{10, byte(r.IntN(4)), byte(r.IntN(4)), byte(r.IntN(4))})
		for range r.IntN(8) {
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(r.IntN(4)), byte(r.IntN(4)), byte(r.IntN(4))}), r.IntN(33)).Masked()
			if which := r.IntN(2); !slices.Contains(lists[1-which], p) {
				lists[which] = append(lists[which], p)
				if p.Contains(address) && p.Bits() > longest {
					longest, listName = p.Bits(), which
				}
			}
		}
		for range 3 {
			for _, list := range lists {
				r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			}
			want := map[int]Listed{-1: Unlisted, 0: Exempted, 1: DenyListed}[listName]
			if got := (&Policy{Exempt: lists[0], Deny: lists[1]}).Lists(address); got != want {
				t.Fatal(fmt.Sprint(address, " exempt ", lists[0], " deny ", lists[1], ": ", got, ", want ", want))
			}
		}
	}
}
