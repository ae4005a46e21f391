package file

import (
	"fmt"
	"net/netip"
	"slices"
)

// Listed is the result of the lists exempt, only and deny for an address.
type Listed uint8

// The values of Listed.
const (
	Unlisted   Listed = iota // the policy applies to its requests
	Exempted                 // the policy does not limit its requests
	DenyListed               // its requests are denied
)

// HasLists reports whether the policy has one of the lists exempt, only and deny.
func (p *Policy) HasLists() bool { return len(p.Exempt)+len(p.Only)+len(p.Deny) > 0 }

// Denies reports whether the policy has a list that denies addresses.
func (p *Policy) Denies() bool { return len(p.Only)+len(p.Deny) > 0 }

// Lists returns what the lists say of an address. An address that only does not
// have is denied, and so is the invalid address, which no list has. Of exempt and
// deny, the longest prefix that contains the address decides.
func (p *Policy) Lists(a netip.Addr) Listed {
	exempt, deny := longest(p.Exempt, a), longest(p.Deny, a)
	switch {
	case len(p.Only) > 0 && longest(p.Only, a) < 0, deny > exempt:
		return DenyListed
	case exempt > deny:
		return Exempted
	}
	return Unlisted
}

// longest returns the length of the longest prefix that contains an address, -1 if
// none does.
func longest(list []netip.Prefix, a netip.Addr) int {
	bits := -1
	for _, p := range list {
		if p.Bits() > bits && p.Contains(a) {
			bits = p.Bits()
		}
	}
	return bits
}

// endLists notes prefixes that contradict each other.
func (r *reader) endLists(m filled, p *Policy) {
	for _, name := range []string{"only", "deny"} {
		if v, found := m.given[name]; found {
			p.denyAt = v
			break
		}
	}
	for _, prefix := range p.Deny {
		if slices.Contains(p.Exempt, prefix) {
			r.bad(m.given["deny"], fmt.Sprintf("%v: exempt has it too", prefix), "leave it out of one of the two lists")
		}
		if slices.Contains(p.Only, prefix) {
			r.bad(m.given["deny"], fmt.Sprintf("%v: only has it too", prefix), "leave it out of one of the two lists")
		}
		for _, o := range p.Only {
			if prefix.Bits() < o.Bits() && prefix.Contains(o.Addr()) {
				r.doubt(m.given["only"], fmt.Sprintf("%v: all of it is denied, because deny has %v", o, prefix), "leave one of the two out")
			}
		}
	}
	if len(p.Only) == 0 {
		return
	}
	for _, prefix := range p.Exempt {
		if !slices.ContainsFunc(p.Only, prefix.Overlaps) {
			r.doubt(m.given["exempt"], fmt.Sprintf("%v: is denied, because only does not have it", prefix), "write it in only too")
		}
	}
}
