package file

import (
	"fmt"
	"slices"
	"strings"
)

// constraint is a condition on the set of fields in a mapping.
type constraint interface {
	// holds reports whether the given fields meet the constraint, and notes a
	// problem if they do not.
	holds(r *reader, v value, given map[string]value) bool
	// schema returns the members of the mapping's schema for the constraint.
	schema() object
	// words describes the constraint in a sentence for the reference; "" if
	// another constraint's words do.
	words() string
}

// all is several constraints, all of which are checked.
type all []constraint

func (a all) holds(r *reader, v value, given map[string]value) bool {
	fine := true
	for _, c := range a {
		fine = c.holds(r, v, given) && fine
	}
	return fine
}

func (a all) schema() object { return both(a) }

func (a all) words() string { return sentences(a) }

// first is several constraints, of which only the first that does not hold is
// noted.
type first []constraint

func (f first) holds(r *reader, v value, given map[string]value) bool {
	return !slices.ContainsFunc(f, func(c constraint) bool { return !c.holds(r, v, given) })
}

func (f first) schema() object { return both(f) }

func (f first) words() string { return sentences(f) }

// both returns one schema for several constraints.
func both(constraints []constraint) object {
	var parts []object
	for _, c := range constraints {
		parts = append(parts, c.schema())
	}
	return object{{"allOf", parts}}
}

func sentences(constraints []constraint) string {
	var texts []string
	for _, c := range constraints {
		if text := c.words(); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " ")
}

// needs is the constraint that a field is of no use without another one.
type needs struct{ field, other, problem, hint string }

func (n needs) holds(r *reader, _ value, given map[string]value) bool {
	if has(given, n.field) && !has(given, n.other) {
		r.bad(given[n.field], n.problem, n.hint)
		return false
	}
	return true
}

func (n needs) schema() object {
	return object{{"dependentRequired", object{{n.field, []string{n.other}}}}}
}

func (n needs) words() string { return fmt.Sprintf("`%s` requires `%s`.", n.field, n.other) }

// together is the constraint that a mapping has both of two fields, or neither.
type together struct{ one, other, problem, hint string }

func (t together) holds(r *reader, v value, given map[string]value) bool {
	if has(given, t.one) != has(given, t.other) {
		r.bad(v, t.problem, t.hint)
		return false
	}
	return true
}

func (t together) schema() object {
	return object{{"dependentRequired", object{{t.one, []string{t.other}}, {t.other, []string{t.one}}}}}
}

func (t together) words() string {
	return fmt.Sprintf("`%s` and `%s` require each other.", t.one, t.other)
}

// exactlyOne is the constraint that a mapping has one of some fields, unless it
// has one of others or the field unless. missing is the problem of none.
type exactlyOne struct {
	fields, others []string
	unless         string // a field beside which there may be none; "": there is no such field
	missing        string
	missingHint    string
	severalHint    string
}

func (e exactlyOne) holds(r *reader, v value, given map[string]value) bool {
	found := slices.DeleteFunc(slices.Clone(e.fields), func(name string) bool { return !has(given, name) })
	for i := 1; i < len(found); i++ {
		r.bad(given[found[i]], found[i-1]+" and "+found[i]+" exclude each other", e.severalHint)
	}
	if len(found) == 0 && !has(given, e.unless) && !slices.ContainsFunc(e.others, func(name string) bool { return has(given, name) }) {
		r.bad(v, e.missing, e.missingHint)
		return false
	}
	return len(found) <= 1
}

func (e exactlyOne) schema() object {
	var parts []object
	for _, name := range append(slices.Clone(e.others), e.fields...) {
		parts = append(parts, object{{"required", []string{name}}})
	}
	one := object{{"oneOf", parts}}
	if e.unless == "" {
		return one
	}
	return object{{"anyOf", []object{one, {{"required", []string{e.unless}}, {"not", object{{"anyOf", parts}}}}}}}
}

func (e exactlyOne) words() string {
	text := "Exactly one of " + enumerate(quotedNames(append(slices.Clone(e.others), e.fields...))) + " is given"
	if e.unless != "" {
		text += ", or `" + e.unless + "`, or both"
	}
	return text + "."
}

// excludes is the constraint that a mapping with a field does not have some
// others, which are of no use with it. If values is not nil, the constraint is
// on these values of the field.
type excludes struct {
	field   string
	values  []string
	others  []string
	problem func(other string) string
	hint    string
}

func (e excludes) holds(r *reader, _ value, given map[string]value) bool {
	v, found := given[e.field]
	if !found {
		return true
	}
	if e.values != nil {
		if v, _ = r.open(v); !slices.Contains(e.values, kindText(v.node)) {
			return true
		}
	}
	fine := true
	for _, name := range e.others {
		if has(given, name) {
			r.bad(given[name], e.problem(name), e.hint)
			fine = false
		}
	}
	return fine
}

func (e excludes) schema() object {
	var parts []object
	for _, name := range e.others {
		parts = append(parts, object{{"required", []string{name}}})
	}
	condition := object{{"required", []string{e.field}}}
	if e.values != nil {
		condition = append(condition, member{"properties", object{{e.field, object{{"enum", e.values}}}}})
	}
	return object{{"if", condition}, {"then", object{{"not", object{{"anyOf", parts}}}}}}
}

func (e excludes) words() string {
	field := e.field
	if e.values != nil {
		field += ": " + strings.Join(e.values, "` or `"+e.field+": ")
	}
	return fmt.Sprintf("With `%s`, there is no %s.", field, enumerate(quotedNames(e.others)))
}

func quotedNames(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = "`" + name + "`"
	}
	return all
}
