package file

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/paths"
)

// Match describes the requests of a policy: those that meet all its conditions.
type Match struct {
	Methods []string        // none: all
	Paths   []paths.Pattern // none: all
	When    *expression.Expression
}

// Patterns returns the patterns of paths as they are written.
func (m *Match) Patterns() string {
	texts := make([]string, len(m.Paths))
	for i, p := range m.Paths {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

const (
	maxMethods  = 50   // of a match
	maxPatterns = 1000 // of a match
)

// matchMapping returns the table of match.
func matchMapping() *mapping[Match] {
	return &mapping[Match]{
		name: "match", want: "a mapping with methods, paths and when", about: "The requests that a policy applies to: those that meet all these conditions.",
		fields: []field[Match]{
			{
				name: "methods", without: "all methods", example: "[GET, POST]",
				about: "HTTP methods; `GET` includes `HEAD`.",
				value: set(list(method(), maxMethods, "a list of methods such as GET", func(s string) string { return s }), func(m *Match) *[]string { return &m.Methods }),
			}, {
				name: "paths", without: "all paths", example: "[/api/**, '/users/{id}']",
				about: "Patterns of paths: `*`, `{id}` and `:id` match one segment; `**`, `{rest...}` and `*rest` at the end match any number.",
				value: set(list(pathPattern(), maxPatterns, "a list of paths such as /users/*", nil), func(m *Match) *[]paths.Pattern { return &m.Paths }),
			}, {
				name: "when", example: `not cidr(ip, "10.0.0.0/8")`,
				about: "A condition that a request must meet.",
				value: set(compiled("an expression that is true or false", (*expression.Expression).MayBeBool), func(m *Match) **expression.Expression { return &m.When }),
			},
		},
	}
}

// method is the name of an HTTP method.
func method() kind[string] {
	k := checked("a method such as GET", func(s string) (problem, hint string) {
		if strings.IndexFunc(s, func(c rune) bool { return (c < 'A' || c > 'Z') && c != '-' }) >= 0 {
			return "is no method", "methods are written in capitals"
		}
		return "", ""
	})
	k.shape = always("methods in capitals", object{{"type", "string"}, {"pattern", "^[A-Z-]+$"}})
	return k
}

// pathPattern is a pattern of paths.
func pathPattern() kind[paths.Pattern] {
	text := checked("a path such as /users/*", func(s string) (problem, hint string) {
		_, problem, hint = paths.Parse(s)
		return problem, hint
	})
	return kind[paths.Pattern]{always("patterns of paths", object{{"type", "string"}, {"pattern", "^/"}}), func(r *reader, v value) (paths.Pattern, bool) {
		s, ok := text.read(r, v)
		p, _, _ := paths.Parse(s)
		return p, ok
	}}
}

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
	}
}
