package policy

import (
	"fmt"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// onDenied reads what a denied client gets.
func (r *reader) onDenied(v value, d *deniedSpec) {
	given := r.mapping(v, "a mapping with status, body, content-type and headers",
		field{"status", func(v value) {
			n, _ := r.integer(v, 400, 599)
			d.status = int(n)
		}},
		field{"body", func(v value) {
			text, _ := r.text(v, "the text of the body")
			d.body = []byte(text)
		}},
		field{"content-type", func(v value) {
			if text, ok := r.text(v, "a media type such as text/plain"); ok && r.headerValue(v, text) {
				d.contentType = text
			}
		}},
		field{"headers", func(v value) { d.header = r.headerLines(v) }},
	)
	if has(given, "content-type") && len(d.body) == 0 {
		r.bad(given["content-type"], "there is no body of this type", "")
	}
	if d.contentType == "" {
		d.contentType = "text/plain; charset=utf-8"
	}
}

func (r *reader) headerLines(v value) []core.Header {
	pairs, _ := r.pairs(v, "a mapping of header names and their values")
	var lines []core.Header
	for _, p := range pairs {
		if _, err := named("header", p.name); err != nil {
			r.bad(value{p.key, p.value.path}, fmt.Sprintf("%q: %v", shorten(p.name), err), "")
			continue
		}
		if text, ok := r.text(p.value, "a header's value"); ok && r.headerValue(p.value, text) {
			lines = append(lines, core.Header{Name: p.name, Value: text})
		}
	}
	return lines
}

// headerValue says that text can stand in a response's header.
func (r *reader) headerValue(v value, text string) bool {
	if strings.IndexFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c >= 0x7f }) >= 0 {
		r.bad(v, fmt.Sprintf("%q: has a character that cannot stand in a header", shorten(text)), "")
		return false
	}
	return true
}
