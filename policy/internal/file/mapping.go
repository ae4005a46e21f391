package file

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// field is a field of a mapping that is read into a T.
type field[T any] struct {
	name     string
	about    string // see description
	example  string
	initial  string
	without  string
	required bool
	hint     string // for a file without the field
	value    use[T]
}

// use is the shape of a field's values, and what is done with a value.
type use[T any] struct {
	shape
	read func(r *reader, v value, to *T)
}

// set reads a value into a part of a T.
func set[T, V any](k kind[V], to func(*T) *V) use[T] {
	return use[T]{k.shape, func(r *reader, v value, t *T) { *to(t), _ = k.read(r, v) }}
}

// then reads a value and calls do if there was no problem.
func then[T, V any](k kind[V], do func(r *reader, v value, t *T, got V)) use[T] {
	return use[T]{k.shape, func(r *reader, v value, t *T) {
		if got, ok := k.read(r, v); ok {
			do(r, v, t, got)
		}
	}}
}

// keep stores a value that is read later.
func keep[T any](s shape, to func(*T) *value) use[T] {
	return use[T]{s, func(_ *reader, v value, t *T) { *to(t) = v }}
}

// within returns the fields of a part of a T as fields of the T.
func within[T, P any](fields []field[P], part func(*T) *P) []field[T] {
	all := make([]field[T], len(fields))
	for i, f := range fields {
		all[i] = field[T]{f.name, f.about, f.example, f.initial, f.without, f.required, f.hint, use[T]{f.value.shape, func(r *reader, v value, t *T) {
			f.value.read(r, v, part(t))
		}}}
	}
	return all
}

// mapping is a mapping of known fields that is read into a T.
type mapping[T any] struct {
	name     string // see section
	want     string // for messages: "a mapping with status and body"
	about    string
	fields   []field[T]
	together string // for the reference: which fields need or exclude others; may be ""
	// check checks the fields together; may be nil.
	check func(m filled, t *T)
}

// filled is a mapping that has been read.
type filled struct {
	value
	r      *reader
	given  map[string]value
	before int // the number of problems before the mapping
}

// has reports whether the mapping has a field.
func (m filled) has(name string) bool { return has(m.given, name) }

// fine reports whether no problem of the mapping has been noted.
func (m filled) fine() bool { return len(m.r.errs) == m.before }

// needs notes a field that is of no use without another one.
func (m filled) needs(field, other, problem, hint string) {
	if m.has(field) && !m.has(other) {
		m.r.bad(m.given[field], problem, hint)
	}
}

// one notes several fields that exclude each other, or that there is none of them unless
// missing is "". It returns false if it has noted something.
func (m filled) one(fields []string, severalHint, missing, missingHint string) bool {
	found := slices.DeleteFunc(slices.Clone(fields), func(name string) bool { return !m.has(name) })
	for i := 1; i < len(found); i++ {
		m.r.bad(m.given[found[i]], found[i-1]+" and "+found[i]+" exclude each other", severalHint)
	}
	if len(found) == 0 && missing != "" {
		m.r.bad(m.value, missing, missingHint)
	}
	return len(found) == 1 || len(found) == 0 && missing == ""
}

// excludes notes those of the others that the mapping has.
func (m filled) excludes(others []string, problem, hint string) {
	for _, name := range others {
		if m.has(name) {
			m.r.bad(m.given[name], problem, hint)
		}
	}
}

// read reads a mapping. It returns false if the value is no mapping.
func (m *mapping[T]) read(r *reader, v value, t *T) bool {
	pairs, ok := r.pairs(v, m.want)
	if !ok {
		return false
	}
	before := len(r.errs)
	given := map[string]value{}
	for _, p := range pairs {
		i := slices.IndexFunc(m.fields, func(f field[T]) bool { return f.name == p.name })
		if i < 0 {
			r.unknown(p, m.names())
			continue
		}
		given[p.name] = p.value
		m.fields[i].value.read(r, p.value, t)
	}
	for _, f := range m.fields {
		if f.required && !has(given, f.name) {
			r.bad(v, "the field "+f.name+" is missing", f.hint)
		}
	}
	if m.check != nil {
		m.check(filled{v, r, given, before}, t)
	}
	return true
}

func (m *mapping[T]) names() []string {
	names := make([]string, len(m.fields))
	for i, f := range m.fields {
		names[i] = f.name
	}
	return names
}

// kind returns the kind of such mappings; begin returns the T that a mapping is read
// into.
func (m *mapping[T]) kind(begin func(v value) T) kind[T] {
	return kind[T]{m.shape(), func(r *reader, v value) (T, bool) {
		t := begin(v)
		ok := m.read(r, v, &t)
		return t, ok
	}}
}

func (m *mapping[T]) section() *section {
	s := &section{name: m.name, about: m.about, together: m.together}
	for _, f := range m.fields {
		s.fields = append(s.fields, description{f.name, f.about, f.example, f.initial, f.without, f.required, f.value.shape})
	}
	return s
}

func (m *mapping[T]) shape() shape {
	s := m.section()
	return shape{"[" + s.name + "](#" + s.name + ")", s.schema, []*section{s}}
}

// unknown notes a field that is not one of the mapping's.
func (r *reader) unknown(p pair, names []string) {
	hint := words.Nearest(p.name, names)
	if hint == "" {
		hint = "the fields here are " + strings.Join(names, ", ")
	}
	if foreign, found := foreignFields[p.name]; found {
		hint = foreign
	}
	r.bad(value{p.key, p.value.path}, "there is no such field", hint)
}

func has(given map[string]value, name string) bool {
	_, found := given[name]
	return found
}

// foreignFields are names that other software has for fields of a policy.
var foreignFields = map[string]string{
	"path":        "write match: {paths: [/api/**]}",
	"paths":       "write match: {paths: [/api/**]}",
	"method":      "write match: {methods: [GET, POST]}",
	"methods":     "write match: {methods: [GET, POST]}",
	"quota":       "write limits: {quota: 100, window: 1h}, or limits: 100/h",
	"window":      "write limits: {quota: 100, window: 1h}, or limits: 100/h",
	"keySelector": "write key",
	"rateLimits":  "write limits",

	"maximumRequests":          "write limits: {maximumRequests: 3, timePeriodInMilliseconds: 6000}",
	"timePeriodInMilliseconds": "write limits: {maximumRequests: 3, timePeriodInMilliseconds: 6000}",

	"exposeHeaders": "write headers: x-milliseconds",
	"clusterizable": "write counting: shared, or counting: local",
	"allow":         "write exempt for addresses that the policy does not limit, or only for the only addresses that are not denied",
	"whitelist":     "write exempt for addresses that the policy does not limit, or only for the only addresses that are not denied",
	"allowlist":     "write exempt for addresses that the policy does not limit, or only for the only addresses that are not denied",
	"blacklist":     "write deny",
	"denylist":      "write deny",
}

// pair is a field of a mapping.
type pair struct {
	name  string
	key   ast.Node
	value value
}

// pairs returns the fields of a mapping, each name once.
func (r *reader) pairs(v value, want string) ([]pair, bool) {
	v, ok := r.open(v)
	if !ok {
		return nil, false
	}
	var nodes []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		nodes = n.Values
	case *ast.MappingValueNode:
		nodes = []*ast.MappingValueNode{n}
	default:
		hint := ""
		if describe(v.node) == "nothing" {
			hint = "is anything missing below it?"
		}
		r.bad(v, describe(v.node)+": want "+want, hint)
		return nil, false
	}
	var pairs []pair
	lines := map[string]int{}
	for _, n := range nodes {
		name := kindText(n.Key)
		at := value{n.Key, v.path}
		if name == "" {
			hint := ""
			if isInteger(at) {
				hint = "put a key that is a number in quotes"
			}
			r.bad(at, words.Shown(n.Key.String())+": is not the name of a field", hint)
			continue
		}
		p := pair{name, n.Key, value{n.Value, words.Shown(name)}}
		if v.path != "" {
			p.value.path = v.path + "." + words.Shown(name)
		}
		if line, twice := lines[name]; twice {
			r.bad(value{n.Key, p.value.path}, fmt.Sprintf("stands twice, in line %d too", line), "")
			continue
		}
		lines[name] = n.Key.GetToken().Position.Line
		if isNull(n.Value) {
			p.value.node = &ast.NullNode{BaseNode: &ast.BaseNode{}, Token: n.Key.GetToken()}
		}
		pairs = append(pairs, p)
	}
	return pairs, true
}

func isNull(n ast.Node) bool {
	_, null := n.(*ast.NullNode)
	return n == nil || null
}
