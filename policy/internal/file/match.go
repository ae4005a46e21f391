package file

import (
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
