package policy

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
		allow, deny []netip.Prefix
		address     string
		yes, no     bool
	}{
		{prefixes("10.1.2.0/24", "10.0.0.0/8"), prefixes("10.1.0.0/16"), "10.1.2.3", true, false},
		{prefixes("10.0.0.0/8", "10.1.2.0/24"), prefixes("10.1.0.0/16"), "10.1.2.3", true, false},
		{prefixes("10.1.0.0/16"), prefixes("10.1.2.0/24", "10.0.0.0/8"), "10.1.2.3", false, true},
		{prefixes("10.1.0.0/16"), prefixes("10.0.0.0/8", "10.1.2.0/24"), "10.1.2.3", false, true},
		{prefixes("10.1.0.0/16"), prefixes("10.0.0.0/8", "10.1.2.0/24"), "10.1.3.3", true, false},
		{prefixes("10.1.2.3/32", "10.1.2.0/24"), prefixes("10.1.2.0/31", "10.1.2.2/31"), "10.1.2.3", true, false},
		{prefixes("0.0.0.0/0"), nil, "192.0.2.1", true, false},
		{nil, prefixes("0.0.0.0/0"), "192.0.2.1", false, true},
		{prefixes("0.0.0.0/0"), prefixes("192.0.2.0/24"), "192.0.2.1", false, true},
		{prefixes("::/0"), prefixes("0.0.0.0/0"), "192.0.2.1", false, true},
		{prefixes("2001:db8::/32"), prefixes("2001:db8:1::/48", "2001::/16"), "2001:db8:1::1", false, true},
		{prefixes("10.0.0.0/8"), prefixes("10.1.0.0/16"), "192.0.2.1", false, false},
	} {
		if yes, no := listed(netip.MustParseAddr(c.address), c.allow, c.deny); yes != c.yes || no != c.no {
			t.Errorf("%s, allow %v, deny %v: allowed %t, denied %t, want %t and %t", c.address, c.allow, c.deny, yes, no, c.yes, c.no)
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
			if yes, no := listed(address, lists[0], lists[1]); yes != (listName == 0) || no != (listName == 1) {
				t.Fatal(fmt.Sprint(address, " allow ", lists[0], " deny ", lists[1], ": ", yes, no))
			}
		}
	}
}
