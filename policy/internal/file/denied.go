package file

import (
	"fmt"
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// Denied is what a denied client gets in place of the default.
type Denied struct {
	Status      int
	Body        string
	ContentType string
	Header      []core.Header
}

const defaultContentType = "text/plain; charset=utf-8"

// deniedMapping returns the table of on-denied.
func deniedMapping() *mapping[Denied] {
	return &mapping[Denied]{
		name: "on-denied", want: "a mapping with status, body, content-type and headers", about: "The response that a denied client gets.",
		fields: []field[Denied]{
			{
				name: "status", without: "429", example: "503",
				about: "The status of the response.",
				value: set(whole[int](400, 599), func(d *Denied) *int { return &d.Status }),
			}, {
				name: "body", without: "a problem document (RFC 9457)", example: "Try again later.",
				about: "The body of the response.",
				value: set(text("the text of the body"), func(d *Denied) *string { return &d.Body }),
			}, {
				name: "content-type", initial: defaultContentType, example: "text/html",
				about: "The media type of the body.",
				value: set(headerValue("a media type such as text/plain"), func(d *Denied) *string { return &d.ContentType }),
			}, {
				name: "headers", example: "{X-Reason: limit}",
				about: "Further headers of the response.",
				value: set(headerLines(), func(d *Denied) *[]core.Header { return &d.Header }),
			},
		},
		rules: needs{"content-type", "body", "there is no body of this type", ""},
		check: func(_ *reader, _ filled, d *Denied) {
			if d.ContentType == "" {
				d.ContentType = defaultContentType
			}
		},
	}
}

// headerValue is text that can stand in a response's header.
func headerValue(want string) kind[string] {
	return checked(want, func(s string) (problem, hint string) {
		if strings.IndexFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c >= 0x7f }) >= 0 {
			return "has a character that cannot stand in a header", ""
		}
		return "", ""
	})
}

// headerLines is a mapping of the names of headers and their values.
func headerLines() kind[[]core.Header] {
	text := headerValue("a header's value")
	look := shape{"a mapping of header names to text", func(d *definitions) object {
		return object{{"type", "object"}, {"additionalProperties", text.schema(d)}}
	}, nil}
	return kind[[]core.Header]{look, func(r *reader, v value) ([]core.Header, bool) {
		pairs, ok := r.pairs(v, "a mapping of header names and their values")
		var lines []core.Header
		for _, p := range pairs {
			if err := expression.HeaderName(p.name); err != nil {
				r.bad(value{p.key, p.value.path}, fmt.Sprintf("%q: %v", words.Shorten(p.name), err), "")
				ok = false
				continue
			}
			line, fine := text.read(r, p.value)
			lines, ok = append(lines, core.Header{Name: p.name, Value: line}), ok && fine
		}
		return lines, ok
	}}
}
