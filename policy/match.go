package policy

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// match says which requests a policy is for: those that all of it says yes to.
type match struct {
	methods []string  // none: all
	paths   []pattern // none: all
	when    *expression
}

func (r *reader) match(v value, f *fileSpec, m *match) {
	r.mapping(v, "a mapping with methods, paths and when",
		field{"methods", func(v value) { m.methods = r.methods(v) }},
		field{"paths", func(v value) {
			for _, item := range r.list(v, maxPatterns, "a list of paths such as /users/*") {
				if text, ok := r.text(item, "a path such as /users/*"); ok {
					p, problem, hint := parsePattern(text)
					if problem != "" {
						r.bad(item, fmt.Sprintf("%q: %s", shorten(text), problem), hint)
						continue
					}
					m.paths = append(m.paths, p)
				}
			}
		}},
		field{"when", func(v value) {
			m.when = r.expression(v, f, "an expression that is true or false", func(e *expression) bool {
				return e.result.Kind() == reflect.Bool || e.result.Kind() == reflect.Interface
			})
		}},
	)
}

func (r *reader) methods(v value) []string {
	var methods []string
	for _, item := range r.list(v, 50, "a list of methods such as GET") {
		name, ok := r.text(item, "a method such as GET")
		switch {
		case !ok:
		case strings.IndexFunc(name, func(c rune) bool { return (c < 'A' || c > 'Z') && c != '-' }) >= 0:
			r.bad(item, fmt.Sprintf("%q: is no method", shorten(name)), "methods are written in capitals")
		case slices.Contains(methods, name):
			r.bad(item, name+": stands twice", "")
		default:
			methods = append(methods, name)
		}
	}
	return methods
}

// verdict is whether a policy is for a request, or why not.
type verdict uint8

const (
	matches verdict = iota
	otherMethod
	preflight
	otherPath
	notWhen
	allowed
)

// of says whether the policy is for a request. An expression that cannot be
// worked out lets it match: no limit is escaped so.
func (m *match) of(r core.Request) verdict {
	method := r.Method()
	if len(m.methods) > 0 && !slices.Contains(m.methods, method) && (method != "HEAD" || !slices.Contains(m.methods, "GET")) {
		return otherMethod
	}
	if len(m.paths) > 0 && !m.hasPath(r) {
		return otherPath
	}
	if m.when != nil {
		if holds, err := m.when.holds(r); err == nil && !holds {
			return notWhen
		}
	}
	if len(m.methods) == 0 && !(core.DefaultHooks{}).ShouldLimit(r) {
		return preflight
	}
	return matches
}

// hasPath says whether one of the patterns is for the request, by its path or by
// the route that the router has given it to.
func (m *match) hasPath(r core.Request) bool {
	all, route := pathsOf(r), r.Route()
	open := openedBy(route, r) // nil for nearly all routes
	for i := range m.paths {
		p := &m.paths[i]
		if p.matches(all) || route != "" && p.covers(route) || open != nil && p.matches(open) {
			return true
		}
	}
	return false
}

// why puts a verdict into words.
func (m *match) why(v verdict) string {
	switch v {
	case otherMethod:
		return "the method is none of " + strings.Join(m.methods, ", ")
	case preflight:
		return "a CORS preflight is not limited"
	case otherPath:
		return "the path is none of " + m.patterns()
	case notWhen:
		return "it is not so that " + m.when.text
	case allowed:
		return "the address is in the list allow"
	}
	if m.when == nil && len(m.methods) == 0 && len(m.paths) == 0 {
		return "it is for all requests"
	}
	return "the request is as match says"
}

func (m *match) patterns() string {
	texts := make([]string, len(m.paths))
	for i, p := range m.paths {
		texts[i] = p.text
	}
	return strings.Join(texts, ", ")
}

// listed says what the lists of addresses say: the longest prefix that has the
// address in it decides.
func listed(a netip.Addr, allow, deny []netip.Prefix) (yes, no bool) {
	longest := func(list []netip.Prefix) int {
		bits := -1
		for _, p := range list {
			if p.Bits() > bits && p.Contains(a) {
				bits = p.Bits()
			}
		}
		return bits
	}
	allowed, denied := longest(allow), longest(deny)
	return allowed > denied, denied > allowed
}
