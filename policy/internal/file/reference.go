package file

import (
	"fmt"
	"slices"
	"strings"
)

// Reference returns a description of all fields in Markdown.
func Reference() string {
	file, _ := root()
	w := &referenceWriter{usedBy: map[string][]string{}}
	w.collect(file.section())
	w.text.WriteString("# The fields of a policy file\n\n" +
		"`floodgate schema --format markdown` prints this page. Package [policy](https://pkg.go.dev/github.com/floodgate-go/floodgate/policy) explains\n" +
		"what a file is, and what expressions and patterns of paths mean.\n")
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
		w.row("`"+f.name+"`", f.shape.words, f.absent(), "`"+f.example+"`", f.about)
	}
	if s.rules != nil {
		fmt.Fprintf(&w.text, "\n%s\n", s.rules.words())
	}
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
