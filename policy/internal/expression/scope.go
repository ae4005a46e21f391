package expression

import (
	"fmt"
	"math"
	"net/netip"
	"strings"

	"github.com/expr-lang/expr/vm"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// scope has the functions that an expression calls during its evaluation. Their names
// end with a space, so that only the rewriter can write them.
type scope struct {
	Plain  func(string) string         `expr:"plain "`
	Named  func(string, string) string `expr:"named "`
	Inside func(int) bool              `expr:"inside "`

	// The operators + - * of integers.
	Sum        func(a, b int) int `expr:"sum "`
	Difference func(a, b int) int `expr:"difference "`
	Product    func(a, b int) int `expr:"product "`

	machine    vm.VM
	request    core.Request
	expression *Expression
	certain    bool  // the expression decides whether a policy applies to the request
	input      int   // bytes that have been read
	err        error // of the first value that could not be read or computed
}

func newScope() *scope {
	s := new(scope)
	s.Plain = func(name string) string { return s.text(name, "", s.expression.sources.plain(name)) }
	s.Named = func(kind, name string) string {
		v := s.expression.fields[accessed{kind, name}]
		if s.certain {
			return s.text(kind, name, v.certain)
		}
		return s.text(kind, name, v.usual)
	}
	s.Inside = func(prefixes int) bool {
		return contain(s.expression.prefixes[prefixes], s.expression.sources.AddressOf(s.request))
	}
	s.Sum = func(a, b int) int { return s.integer(a+b, float64(a)+float64(b)) }
	s.Difference = func(a, b int) int { return s.integer(a-b, float64(a)-float64(b)) }
	s.Product = func(a, b int) int { return s.integer(a*b, float64(a)*float64(b)) }
	return s
}

// integer returns the result n of an operator. If n may have overflowed, the request is at fault: a
// huge number must not become a small cost. about is the result as a float64.
func (s *scope) integer(n int, about float64) int {
	if math.Abs(about) > 1<<62 && s.err == nil {
		s.err = fmt.Errorf("%w: the expression %q has a result above 2^62", core.ErrBadRequest, words.Shorten(s.expression.text))
	}
	return n
}

// text reads a value of the request and counts its bytes against the bound.
func (s *scope) text(kind, name string, f core.KeyFunc) string {
	if s.err != nil {
		return ""
	}
	var buf [64]byte
	text, err := f(buf[:0], s.request)
	if s.input += len(text); err == nil && s.input > s.expression.mostInput() {
		if name != "" {
			kind = fmt.Sprintf("%s[%q]", kind, name)
		}
		err = fmt.Errorf("%w: %s has %d bytes: the expression %q reads at most %d of a request", core.ErrBadRequest, kind, len(text), words.Shorten(s.expression.text), s.expression.mostInput())
	}
	if err != nil {
		s.err = err
		return ""
	}
	return string(text)
}

func (s *scope) release() {
	s.request, s.expression, s.certain, s.err, s.input = nil, nil, false, nil, 0
	evaluators.Put(s)
}

func contain(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// ParsePrefix reads a prefix, or an address as the prefix of itself alone.
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
