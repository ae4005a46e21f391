package file

import (
	"bytes"
	"encoding/json"
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
	name   string // in the schema's definitions, and as the heading of the reference
	about  string
	fields []description
	rules  constraint
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
