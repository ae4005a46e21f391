package expression

import (
	"net/netip"

	"github.com/floodgate-go/floodgate/core"
)

// Sources has the values that a request does not have itself.
type Sources struct {
	IP      core.KeyFunc                // the client's address, an IPv6 one cut to a prefix
	Address core.KeyFunc                // the client's whole address
	User    func(r core.Request) string // nil: expressions cannot use user
	Trusted []string                    // the names of headers that a client cannot choose

	params map[string]core.KeyFunc // of parameters of the route, by their names; written while a file is read
}

// AddressMemo remembers the client's address of one request. A request whose
// Value has one under [AddressMemoKey] is asked for its address once.
type AddressMemo struct {
	from *Sources // nil: nothing is remembered
	addr netip.Addr
}

// AddressMemoKey is the key of a request's *AddressMemo.
type AddressMemoKey struct{}

// AddressOf returns the client's whole address; it is not valid if there is none.
func (s *Sources) AddressOf(r core.Request) netip.Addr {
	memo, _ := r.Value(AddressMemoKey{}).(*AddressMemo)
	if memo != nil && memo.from == s {
		return memo.addr
	}
	var buf [64]byte
	a := netip.Addr{}
	if text, err := s.Address(buf[:0], r); err == nil {
		a, _ = netip.ParseAddr(string(text))
	}
	if memo != nil {
		memo.from, memo.addr = s, a
	}
	return a
}
