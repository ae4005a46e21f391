package file

import (
	"bytes"
	"encoding/json"
	"sync"
)

// Schema returns the JSON Schema (2020-12) of policy files. It knows what a file
// looks like; [Read] checks what is in expressions and limits, too.
var Schema = sync.OnceValue(func() []byte {
	file, _ := root()
	d := &definitions{index: map[string]int{}}
	whole := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "https://github.com/floodgate-go/floodgate/policy/schema.json"},
		{"title", "Floodgate policies"},
		{"description", "Limits of an application's requests, by package policy of github.com/floodgate-go/floodgate."},
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
	if s.rules != nil {
		o = append(o, s.rules.schema()...)
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
