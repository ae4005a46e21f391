package policy

import (
	"net/netip"
	"slices"

	"github.com/floodgate-go/floodgate/core"
)

// request is a request on its way through a file's policies. It remembers what
// several of them ask for. Nothing of a body is remembered: a limiter asks for
// it twice, see core.Hooks.
type request struct {
	core.Request
	memo memo
}

type memo struct {
	only   []string // the policies that are asked; nil: all
	except []string // those that are not
	paths  *paths   // nil: not known
	from   *sources // of the address; nil: not known
	addr   netip.Addr
}

// asks says whether a policy is asked about the request.
func (m *memo) asks(policy string) bool {
	return m == nil || (m.only == nil || slices.Contains(m.only, policy)) && !slices.Contains(m.except, policy)
}

type memoKey struct{}

// Value implements [core.Request]. What the limiter hands to hooks and key
// functions wraps the request, and asks it for values.
func (r *request) Value(key any) any {
	if key == (memoKey{}) {
		return &r.memo
	}
	return r.Request.Value(key)
}

// remembered returns the memory of a request that is on its way through a Set,
// nil for any other.
func remembered(r core.Request) *memo {
	m, _ := r.Value(memoKey{}).(*memo)
	return m
}

// addressOf returns the client's whole address, not valid where there is none.
func (s *sources) addressOf(r core.Request) netip.Addr {
	m := remembered(r)
	if m != nil && m.from == s {
		return m.addr
	}
	var buf [64]byte
	a := netip.Addr{}
	if text, err := s.address(buf[:0], r); err == nil {
		a, _ = netip.ParseAddr(string(text))
	}
	if m != nil {
		m.from, m.addr = s, a
	}
	return a
}
