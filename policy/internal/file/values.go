package file

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// The methods of this file read one kind of values each. They return false if they have
// noted a problem.

// field is a known field of a mapping, and the function that reads its value.
type field struct {
	name string
	read func(v value)
}

// into returns a function that reads a value and stores it in to.
func into[V any](to *V, read func(v value) (V, bool)) func(value) {
	return func(v value) { *to, _ = read(v) }
}

// mapping is a mapping whose fields have been read.
type mapping struct {
	value
	r      *reader
	given  map[string]value
	before int // the number of problems before the mapping
}

// fields reads a mapping of known fields. It returns false if the value is no mapping.
func (r *reader) fields(v value, want string, known ...field) (mapping, bool) {
	m := mapping{v, r, map[string]value{}, len(r.errs)}
	pairs, ok := r.pairs(v, want)
	for _, p := range pairs {
		i := slices.IndexFunc(known, func(f field) bool { return f.name == p.name })
		if i < 0 {
			r.unknown(p, known)
			continue
		}
		m.given[p.name] = p.value
		known[i].read(p.value)
	}
	return m, ok
}

// elsewhere has hints for fields that belong into the text of limits, and for MuleSoft's fields.
var elsewhere = map[string]string{
	"quota":                    "write limits: 100/h",
	"window":                   "write limits: 100/h",
	"maximumRequests":          "write limits: {maximumRequests: 3, timePeriodInMilliseconds: 6000}",
	"timePeriodInMilliseconds": "write limits: {maximumRequests: 3, timePeriodInMilliseconds: 6000}",
	"keySelector":              "write key",
	"rateLimits":               "write limits",
	"exposeHeaders":            "write headers: x-milliseconds",
	"clusterizable":            "write counting: shared, or counting: local",
	"postgres":                 "have the program give policy.WithStore a store that exchanges through PostgreSQL",
}

// unknown notes a field that is not one of the mapping's.
func (r *reader) unknown(p pair, known []field) {
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	hint := cmp.Or(elsewhere[p.name], "the fields here are "+strings.Join(names, ", "))
	r.bad(value{p.key, p.value.path}, "there is no such field", hint)
}

// has reports whether the mapping has a field.
func (m mapping) has(name string) bool {
	_, found := m.given[name]
	return found
}

// fine reports whether no problem of the mapping has been noted.
func (m mapping) fine() bool { return len(m.r.errs) == m.before }

// requires notes fields that are missing.
func (m mapping) requires(hint string, names ...string) {
	for _, name := range names {
		if !m.has(name) {
			m.r.bad(m.value, "the field "+name+" is missing", hint)
		}
	}
}

// needs notes a field that is of no use without another one.
func (m mapping) needs(name, other, problem, hint string) {
	if m.has(name) && !m.has(other) {
		m.r.bad(m.given[name], problem, hint)
	}
}

// one notes several fields that exclude each other, or that there is none of them unless
// missing is "". It returns false if it has noted something.
func (m mapping) one(names []string, severalHint, missing, missingHint string) bool {
	found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !m.has(name) })
	for i := 1; i < len(found); i++ {
		m.r.bad(m.given[found[i]], found[i-1]+" and "+found[i]+" exclude each other", severalHint)
	}
	if len(found) == 0 && missing != "" {
		m.r.bad(m.value, missing, missingHint)
	}
	return len(found) == 1 || len(found) == 0 && missing == ""
}

// text reads a text that is not empty.
func (r *reader) text(v value, want string) (string, bool) {
	var s string
	switch n := v.node.(type) {
	case *ast.StringNode:
		s = n.Value
	case *ast.LiteralNode:
		s = strings.TrimSuffix(n.Value.Value, "\n")
	case nil, *ast.NullNode:
		r.bad(v, "is empty", "want "+want+"; a value that begins with # is a comment in YAML: put it in quotes")
		return "", false
	case *ast.MappingNode, *ast.SequenceNode:
		r.bad(v, describe(v.node)+": want "+want, "")
		return "", false
	default:
		r.bad(v, describe(v.node)+": is not text: want "+want, "put text that looks like something else in quotes")
		return "", false
	}
	if s == "" {
		r.bad(v, "is empty", "want "+want)
	}
	return s, s != ""
}

// wanted returns a function that reads such a text.
func (r *reader) wanted(want string) func(value) (string, bool) {
	return func(v value) (string, bool) { return r.text(v, want) }
}

// checked reads a text, and notes the problem that check returns.
func (r *reader) checked(v value, want string, check func(text string) (problem, hint string)) (string, bool) {
	s, ok := r.text(v, want)
	if !ok {
		return "", false
	}
	if problem, hint := check(s); problem != "" {
		r.bad(v, fmt.Sprintf("%q: %s", words.Shown(s), problem), hint)
		return "", false
	}
	return s, true
}

// form reads a text that matches the regular expression form.
func (r *reader) form(v value, want string, form *regexp.Regexp, problem, hint string) (string, bool) {
	return r.checked(v, want, func(s string) (string, string) {
		if form.MatchString(s) {
			return "", ""
		}
		return problem, hint
	})
}

var (
	nameForm        = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	methodForm      = regexp.MustCompile(`^[A-Z-]+$`)
	headerValueForm = regexp.MustCompile(`^[\t -~]+$`)
)

// name reads a name that becomes part of the names of counters and of headers.
func (r *reader) name(v value) (string, bool) {
	return r.form(v, "a name", nameForm, "want 1 to 64 of the characters A-Z a-z 0-9 _ . -", "")
}

// method reads the name of an HTTP method.
func (r *reader) method(v value) (string, bool) {
	return r.form(v, "a method such as GET", methodForm, "is no method", "methods are written in capitals")
}

// headerValue reads text that can stand in a response's header.
func (r *reader) headerValue(v value, want string) (string, bool) {
	return r.form(v, want, headerValueForm, "has a character that cannot stand in a header", "")
}

// headerName reads the name of a header.
func (r *reader) headerName(v value) (string, bool) {
	return r.checked(v, "the name of a header such as X-Forwarded-For", func(s string) (problem, hint string) {
		if err := expression.HeaderName(s); err != nil {
			return err.Error(), ""
		}
		return "", ""
	})
}

// word is one of the words of a choice.
type word[V any] struct {
	text  string
	means V
}

// choice returns a function that reads one of some words.
func choice[V any](r *reader, all ...word[V]) func(value) (V, bool) {
	texts := make([]string, len(all))
	for i, w := range all {
		texts[i] = w.text
	}
	last := len(texts) - 1
	want := "want " + strings.Join(texts[:last], ", ") + " or " + texts[last]
	return func(v value) (means V, ok bool) {
		text := kindText(v.node)
		i := slices.Index(texts, text)
		if i < 0 {
			r.bad(v, describe(v.node)+": "+want, "")
			return means, false
		}
		return all[i].means, true
	}
}

// whole returns a function that reads a whole number of decimal digits.
func whole[N int | int64](r *reader, least, most N) func(value) (N, bool) {
	want := fmt.Sprintf("want a whole number from %d to %d", least, most)
	return func(v value) (N, bool) {
		text := describe(v.node)
		if n, is := v.node.(*ast.IntegerNode); is {
			text = n.Token.Value
			if i, err := strconv.ParseInt(text, 10, 64); err == nil && i >= int64(least) && i <= int64(most) {
				return N(i), true
			}
		}
		r.bad(v, text+": "+want, "")
		return 0, false
	}
}

func (r *reader) boolean(v value) (is, ok bool) {
	n, ok := v.node.(*ast.BoolNode)
	if !ok {
		r.bad(v, describe(v.node)+": want true or false", "")
		return false, false
	}
	return n.Value, true
}

// items returns the values of a list of 1 to most values. If alone is true, a value that is
// not a list is the only item.
func (r *reader) items(v value, most int, want string, alone bool) []value {
	n, ok := v.node.(*ast.SequenceNode)
	switch {
	case !ok && alone:
		return []value{v}
	case !ok:
		hint := ""
		if isMapping(v) {
			hint = "begin each item of the list with a dash and a space, as in - name: api"
		}
		r.bad(v, describe(v.node)+": want "+want, hint)
		return nil
	case len(n.Values) == 0:
		if what, plain := strings.CutPrefix(want, "a list of "); plain {
			want = fmt.Sprintf("1 to %d %s", most, what)
		}
		r.bad(v, "the list is empty: want "+want, "")
		return nil
	case len(n.Values) > most:
		r.bad(v, fmt.Sprintf("a list of %d: want %s, 1 to %d", len(n.Values), want, most), "")
		return nil
	}
	values := make([]value, len(n.Values))
	for i, e := range n.Values {
		values[i] = value{e, fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return values
}

// list returns a function that reads a list.
func list[V any](r *reader, most int, want string, read func(value) (V, bool)) func(value) ([]V, bool) {
	return func(v value) (all []V, ok bool) {
		before := len(r.errs)
		for _, item := range r.items(v, most, want, false) {
			if got, ok := read(item); ok {
				all = append(all, got)
			}
		}
		return all, len(r.errs) == before
	}
}

// duration returns a function that reads a length of time, written as in limits: 500ms, 6s, 2h.
func (r *reader) duration(want string) func(value) (time.Duration, bool) {
	return func(v value) (time.Duration, bool) {
		text, ok := r.text(v, want)
		if !ok {
			return 0, false
		}
		if !strings.ContainsAny(text, " ,/\t\n") {
			if limits, err := core.ParseLimits("1/" + text); err == nil && limits[0].Zone == nil {
				return limits[0].Window, true
			}
		}
		r.bad(v, fmt.Sprintf("%q: want %s", words.Shown(text), want), "units are ms, s, m, h, d and w; 366 days at most")
		return 0, false
	}
}

// expression returns a function that reads an expression of a kind.
func (r *reader) expression(want string, kind expression.Kind) func(value) (*expression.Expression, bool) {
	return func(v value) (*expression.Expression, bool) {
		text, ok := r.text(v, want)
		if !ok {
			return nil, false
		}
		e, bad := expression.Compile(text, r.spec.Sources, kind)
		if bad != nil {
			r.bad(v, bad.Problem, cmp.Or(bad.Hint, "want "+want))
			return nil, false
		}
		return e, true
	}
}

// prefixes reads a list of addresses and prefixes.
func (r *reader) prefixes(v value) ([]netip.Prefix, bool) {
	const want = "a list of prefixes such as 10.0.0.0/8"
	return list(r, 10_000, want, func(v value) (netip.Prefix, bool) {
		text, ok := r.text(v, "a prefix such as 10.0.0.0/8")
		if !ok {
			return netip.Prefix{}, false
		}
		p, err := expression.ParsePrefix(text)
		if err != nil {
			r.bad(v, err.Error(), "")
		}
		return p, err == nil
	})(v)
}
