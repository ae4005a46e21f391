package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, part := range []any{m.name, m.value} {
			if j > 0 {
				b.WriteByte(':')
			}
			text, err := json.Marshal(part)
			if err != nil {
				return nil, err
			}
			b.Write(text)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// definitions are the parts of a schema that have a name.
type definitions struct {
	all   object
	index map[string]int
}

// ref returns a reference to a part, which is made once.
func (d *definitions) ref(name string, part func() object) object {
	if _, known := d.index[name]; !known {
		i := len(d.all)
		d.index[name], d.all = i, append(d.all, member{name: name})
		d.all[i].value = part()
	}
	return object{{"$ref", "#/$defs/" + name}}
}

// shape is what the values of a kind look like.
type shape struct {
	words    string                      // for the reference: "a whole number from 1 to 5"
	schema   func(d *definitions) object // JSON Schema
	sections []*section                  // the mappings in the values, for the reference
}

// section describes the fields of a mapping.
type section struct {
	name     string // in the schema's definitions, and as the heading of the reference
	about    string
	fields   []description
	together string
}

// description is what is known of a field beside how it is read.
type description struct {
	name     string
	about    string // one sentence
	example  string // a value as it is written in a file
	initial  string // the value that is meant without the field, as it is written; "" if there is none
	without  string // what is meant without the field if no value says it
	required bool
	shape    shape
}

// oneOf is the shape of values of any of several shapes.
func oneOf(words string, all ...shape) shape {
	s := shape{words: words}
	for _, a := range all {
		s.sections = append(s.sections, a.sections...)
	}
	s.schema = func(d *definitions) object {
		var parts []object
		for _, a := range all {
			parts = append(parts, a.schema(d))
		}
		return object{{"oneOf", parts}}
	}
	return s
}

// listOf is the shape of a list.
func listOf(of shape, most int, unique bool) shape {
	return shape{"a list of " + of.words, func(d *definitions) object {
		o := object{{"type", "array"}, {"minItems", 1}, {"maxItems", most}}
		if unique {
			o = append(o, member{"uniqueItems", true})
		}
		return append(o, member{"items", of.schema(d)})
	}, of.sections}
}

// always is a shape of this schema.
func always(words string, o object) shape {
	return shape{words: words, schema: func(*definitions) object { return o }}
}

// schemaChecks says what the schema promises.
const schemaChecks = "This schema checks each field and the type of its value; floodgate check finds every mistake."

// Schema returns the JSON Schema (2020-12) of policy files, which checks less than [Read]:
// see schemaChecks.
var Schema = sync.OnceValue(func() []byte {
	file, _ := root()
	d := &definitions{index: map[string]int{}}
	whole := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "https://github.com/floodgate-go/floodgate/policy/schema.json"},
		{"title", "Floodgate policies"},
		{"description", "Limits of an application's requests, by package policy of github.com/floodgate-go/floodgate. " + schemaChecks},
	}
	whole = append(whole, file.section().object(d)...)
	text, err := json.Marshal(append(whole, member{"$defs", d.all}))
	if err != nil {
		panic(err) // it has texts and numbers only
	}
	var b bytes.Buffer
	_ = json.Indent(&b, text, "", "  ")
	b.WriteByte('\n')
	return b.Bytes()
})

// schema returns a reference to the section's schema.
func (s *section) schema(d *definitions) object {
	return d.ref(s.name, func() object { return s.object(d) })
}

// object returns the section's schema.
func (s *section) object(d *definitions) object {
	o := object{{"type", "object"}, {"additionalProperties", false}}
	var required []string
	var properties object
	for _, f := range s.fields {
		if f.required {
			required = append(required, f.name)
		}
		property := object{{"description", f.about}}
		if f.initial != "" {
			property = append(property, member{"default", f.literal()})
		}
		properties = append(properties, member{f.name, append(property, f.shape.schema(d)...)})
	}
	if required != nil {
		o = append(o, member{"required", required})
	}
	return append(o, member{"properties", properties})
}

// literal returns the initial value as JSON.
func (f *description) literal() any {
	if json.Valid([]byte(f.initial)) {
		return json.RawMessage(f.initial)
	}
	return f.initial
}

// Reference returns a description of all fields in Markdown.
func Reference() string {
	file, _ := root()
	w := &referenceWriter{usedBy: map[string][]string{}}
	w.collect(file.section())
	w.text.WriteString("# The fields of a policy file\n\n" +
		"`floodgate schema --format markdown` prints this page. Package [policy](https://pkg.go.dev/github.com/floodgate-go/floodgate/policy) explains\n" +
		"what a file is, and what expressions and patterns of paths mean. The JSON Schema that `floodgate schema` prints checks each field and the type\n" +
		"of its value; `floodgate check` finds every mistake.\n")
	for _, s := range w.sections {
		w.section(s)
	}
	return w.text.String()
}

type referenceWriter struct {
	text     strings.Builder
	sections []*section          // in the order in which a reader meets them
	usedBy   map[string][]string // the fields of which a section describes the values
}

// collect finds a section and all that its fields lead to.
func (w *referenceWriter) collect(s *section) {
	w.sections = append(w.sections, s)
	for _, f := range s.fields {
		for _, to := range f.shape.sections {
			w.usedBy[to.name] = append(w.usedBy[to.name], "["+s.name+"](#"+s.name+") (`"+f.name+"`)")
			if !slices.ContainsFunc(w.sections, func(known *section) bool { return known.name == to.name }) {
				w.collect(to)
			}
		}
	}
}

func (w *referenceWriter) section(s *section) {
	fmt.Fprintf(&w.text, "\n## %s\n\n%s", s.name, s.about)
	if by := w.usedBy[s.name]; by != nil {
		fmt.Fprintf(&w.text, " Used in %s.", enumerate(by))
	}
	w.text.WriteString("\n\n| Field | Type | Default | Example | Meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range s.fields {
		if s.repeats(f) {
			continue
		}
		w.row("`"+f.name+"`", f.shape.words, f.absent(), "`"+f.example+"`", f.about)
	}
	if s.together != "" {
		fmt.Fprintf(&w.text, "\n%s\n", s.together)
	}
}

// repeats reports whether the entries of another field have f too, with the same
// meaning. The reference describes it there only: a policy with one rule has the
// fields of a rule.
func (s *section) repeats(f description) bool {
	for _, other := range s.fields {
		for _, to := range other.shape.sections {
			if slices.ContainsFunc(to.fields, func(g description) bool { return g.name == f.name && g.about == f.about }) {
				return true
			}
		}
	}
	return false
}

func (w *referenceWriter) row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	w.text.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// absent says what is meant without the field.
func (f *description) absent() string {
	switch {
	case f.required:
		return "required"
	case f.initial != "":
		return "`" + f.initial + "`"
	case f.without != "":
		return f.without
	}
	return "none"
}

// enumerate joins words: "a, b and c".
func enumerate(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}
