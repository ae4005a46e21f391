package policy

import (
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/file"
)

// verdict is the answer to whether a policy applies to a request, or why not.
type verdict uint8

const (
	matches verdict = iota
	otherMethod
	preflight
	otherPath
	notWhen
	exempted
)

// verdictOf reports whether a match covers a request. If its expression cannot
// be evaluated, the match covers the request: a client must not escape a limit
// that way.
func verdictOf(m *file.Match, r core.Request) verdict {
	method := r.Method()
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, method) && (method != "HEAD" || !slices.Contains(m.Methods, "GET")) {
		return otherMethod
	}
	if len(m.Paths) > 0 && !pathOf(r).Matches(m.Paths) {
		return otherPath
	}
	if m.When != nil {
		if holds, err := m.When.Holds(r); err == nil && !holds {
			return notWhen
		}
	}
	if len(m.Methods) == 0 && !(core.DefaultHooks{}).ShouldLimit(r) {
		return preflight
	}
	return matches
}

// why describes a verdict.
func (v verdict) why(m *file.Match) string {
	switch v {
	case otherMethod:
		return "the method is none of " + strings.Join(m.Methods, ", ")
	case preflight:
		return "a CORS preflight is not limited"
	case otherPath:
		return "the path is none of " + m.Patterns()
	case notWhen:
		return "its condition when is false: " + m.When.String()
	case exempted:
		return "the address is in the list exempt"
	}
	if m.When == nil && len(m.Methods) == 0 && len(m.Paths) == 0 {
		return "the policy has no match conditions"
	}
	return "the request meets all conditions of match"
}

// verdict reports whether the policy applies to a request.
func (p *enforcedPolicy) verdict(r core.Request) verdict {
	v := verdictOf(&p.Match, r)
	if (v == matches || v == preflight) && p.HasLists() {
		switch p.Lists(p.sources.AddressOf(r)) {
		case file.DenyListed:
			return matches // a preflight is not limited, but it is denied
		case file.Exempted:
			if v == matches {
				return exempted
			}
		case file.Unlisted:
		}
	}
	return v
}

// denies reports whether one of the lists only and deny denies the client's
// address.
func (p *enforcedPolicy) denies(r core.Request) bool {
	return p.Denies() && p.Lists(p.sources.AddressOf(r)) == file.DenyListed
}

// costOf returns how many hits a request costs.
func (p *enforcedPolicy) costOf(r core.Request) (int64, error) {
	if p.Cost == nil || p.denies(r) { // a request that costs nothing would be allowed
		return 1, nil
	}
	return p.Cost.Hits(r)
}
